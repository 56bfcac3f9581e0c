// source: Dao-AILab/quack#146, 2026-05-26
// link: https://github.com/Dao-AILab/quack/pull/146
// wrong: a named barrier counts one load warp and the epilogue warp, but four load warps arrive
// finds: deadlock|collective|mbarrier:
// launch: threads=160 target=sm_90a
KERNEL(160) {
    const u32 t = threadIdx.x;
    const u32 count = BEFORE(64) AFTER(160);
    if (t < 128) bar_arrive(1, count);
    else bar(1, count);
    out[t] = in[t];
}
