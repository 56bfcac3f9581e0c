// source: NVIDIA/cutlass#2835, 2025-12-03
// link: https://github.com/NVIDIA/cutlass/pull/2835
// wrong: with no tile to work on nothing orders the epilogue's read of the TMEM address after tcgen05.alloc
// finds: race:
// launch: threads=64
KERNEL(64) {
    __shared__ u32 address;
    __shared__ u64 product;
    const u32 t = threadIdx.x, tiles = words[0];
    if (t == 0) init(&product, 1);
    __syncthreads();
    if (t < 32) {
        if (BEFORE(true) AFTER(tiles > 0)) alloc(&address, 64);
        for (u32 i = 0; i < tiles; i++)
            if (elect()) arrive(&product);
    } else {
        for (u32 i = 0; i < tiles; i++) wait(&product, i & 1);
        if (BEFORE(true) AFTER(tiles > 0)) dealloc(*(volatile u32 *)&address, 64);
    }
}
