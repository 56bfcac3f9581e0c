// source: deepseek-ai/DeepGEMM#448, 2026-09-15
// link: https://github.com/deepseek-ai/DeepGEMM/pull/448
// wrong: registers that hold A are written again while the wgmma that reads them may still run
// finds: async-pending: a register of A of this wgmma is written
// launch: threads=128 target=sm_90a
#define WGMMA "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {x, x, x, x}, %4, 1, 1, 1, 0;"
KERNEL(128) {
    __shared__ alignas(1024) u32 b[256];
    const u32 t = threadIdx.x;
    for (int i = t; i < 256; i += 128) b[i] = 0;
    fence_async();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    ASM("{.reg .b32 x; mov.b32 x, %5;\n"
        "wgmma.fence.sync.aligned;\n" WGMMA "wgmma.commit_group.sync.aligned;\n"
        AFTER("wgmma.wait_group.sync.aligned 0;\n")
        "mov.b32 x, %6;\n"
        "wgmma.fence.sync.aligned;\n" WGMMA "wgmma.commit_group.sync.aligned;}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(wgmma_desc(b)), "r"(t), "r"(t + 1) : "memory");
    wgmma_wait<0>();
    out[t] = d[0] + d[1] + d[2] + d[3];
}
