// source: mlc-ai/TIRx-kernels#151, 2026-09-03
// link: https://github.com/mlc-ai/TIRx-kernels/pull/151
// wrong: the four warps of a warpgroup execute different setmaxnreg
// finds: collective review: setmaxnreg
// launch: threads=256 target=sm_90a
KERNEL(256) {
    const u32 warp = threadIdx.x / 32;
    if (warp < 4) {
        ASM("setmaxnreg.inc.sync.aligned.u32 232;");
    } else if (BEFORE(warp < 6) AFTER(true)) {
        ASM("setmaxnreg.dec.sync.aligned.u32 24;");
    } else {
        ASM("setmaxnreg.dec.sync.aligned.u32 40;");
    }
    out[threadIdx.x] = in[threadIdx.x];
}
