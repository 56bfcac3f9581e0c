// source: deepseek-ai/DeepGEMM#343, 2026-05-29
// link: https://github.com/deepseek-ai/DeepGEMM/pull/343
// wrong: the tensor map of the last group is updated in place before its TMA loads have finished with it
// finds: race: of its tensor map
// launch: threads=32 target=sm_90a
KERNEL(32) {
    __shared__ alignas(128) float data[2][1024];
    __shared__ alignas(128) CUtensorMap map;
    __shared__ u64 full[2];
    const u32 t = threadIdx.x;
    CUtensorMap *mine = (CUtensorMap *)(words + 64);
    if (t == 0) { init(&full[0], 1); init(&full[1], 1); fence_mbarrier_init(); }
    if (t < 16) ((u64 *)&map)[t] = ((const u64 *)&row)[t];
    __syncwarp();
    for (int group = 0; group < 2; group++) {
        AFTER(if (group) wait(&full[0], 0);)
        if (t == 0)
            ASM("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                ::"r"(at(&map)), "l"(group ? in : out) : "memory");
        __syncwarp();
        ASM("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
            ::"l"(__cvta_generic_to_global(mine)), "r"(at(&map)) : "memory");
        ASM("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(mine) : "memory");
        if (t == 0) { expect(&full[group], 4096); load(data[group], mine, 0, 0, &full[group]); }
    }
    wait(&full[0], 0);
    wait(&full[1], 0);
    out[t] = data[0][t] + data[1][t];
}
