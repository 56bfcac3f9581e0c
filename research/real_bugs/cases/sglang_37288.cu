// source: sgl-project/sglang#37288, 2026-08-31
// link: https://github.com/sgl-project/sglang/pull/37288
// wrong: the next chunk's factors are stored while a lagging warp still reads those of the last one
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ float beta[128];
    const u32 t = threadIdx.x;
    for (int chunk = 0; chunk < 3; chunk++) {
        beta[t] = in[128 * chunk + t];
        bar(1, 128);
        out[128 * chunk + t] = beta[127 - t];
        AFTER(bar(1, 128);)
    }
}
