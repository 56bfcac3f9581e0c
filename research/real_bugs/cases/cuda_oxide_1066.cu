// source: NVlabs/cuda-oxide#1066, 2026-08-30
// link: https://github.com/NVlabs/cuda-oxide/pull/1066
// wrong: the scheduler writes the next tile into the one mailbox while roles may still read the last one
// finds: race: is_free\[0\] was not waited for
// launch: threads=160 target=sm_90a
KERNEL(160) {
    __shared__ u32 mailbox;
    __shared__ u64 ready, is_free;
    const u32 t = threadIdx.x, warp = t / 32;
    if (t == 0) { init(&ready, 1); init(&is_free, 4); }
    __syncthreads();
    for (int i = 0; i < 4; i++) {
        if (t == 128) {
            AFTER(if (i > 0) wait(&is_free, i - 1 & 1);)
            mailbox = words[i];
            arrive(&ready);
        }
        if (warp < 4) {
            wait(&ready, i & 1);
            const u32 mine = *(volatile u32 *)&mailbox;
            __syncwarp();
            if (elect()) arrive(&is_free);
            out[128 * i + t] = mine;
        }
    }
}
