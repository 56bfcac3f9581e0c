// source: tile-ai/tilelang#2406, 2026-06-16
// link: https://github.com/tile-ai/tilelang/pull/2406
// wrong: two warpgroups of producers and two of consumers ask for 24 and 240 registers: more than the SM has
// finds: deadlock: setmaxnreg
// launch: threads=512 target=sm_90a
KERNEL(512) {
    if (threadIdx.x < 256) {
        ASM("setmaxnreg.dec.sync.aligned.u32 24;");
    } else {
        BEFORE(ASM("setmaxnreg.inc.sync.aligned.u32 240;");)
        AFTER(ASM("setmaxnreg.inc.sync.aligned.u32 224;");)
    }
    out[threadIdx.x] = in[threadIdx.x];
}
