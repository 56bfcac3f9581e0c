// source: NVIDIA/cutlass#2162, 2025-03-11
// link: https://github.com/NVIDIA/cutlass/issues/2162
// wrong: a tensor map in global memory is replaced while a TMA store through it may not have read it yet
// finds: race: of its tensor map
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[1024];
    __shared__ alignas(128) CUtensorMap map;
    const u32 t = threadIdx.x;
    CUtensorMap *mine = (CUtensorMap *)(words + 64);
    for (int i = t; i < 1024; i += 32) data[i] = in[i];
    fence_async();
    if (t < 16) ((u64 *)&map)[t] = ((const u64 *)&store)[t];
    __syncwarp();
    for (int group = 0; group < 2; group++) {
        if (t == 0)
            ASM("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                ::"r"(at(&map)), "l"(group ? (float *)in : out) : "memory");
        __syncwarp();
        AFTER(if (t == 0 && group) bulk_wait<0>();)
        AFTER(__syncwarp();)
        ASM("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
            ::"l"(__cvta_generic_to_global(mine)), "r"(at(&map)) : "memory");
        ASM("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(mine) : "memory");
        if (t == 0) { store_tile(mine, 0, 0, data); bulk_commit(); }
    }
    if (t == 0) bulk_wait<0>();
}
