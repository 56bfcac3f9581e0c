// source: tile-ai/tilelang#2699, 2026-07-19
// link: https://github.com/tile-ai/tilelang/issues/2699
// wrong: shared memory is cleared by st.bulk, which the compiler does not see as a write, while others read it
// finds: race: are not ordered
// launch: threads=64
KERNEL(64) {
    __shared__ alignas(16) float data[64];
    const u32 t = threadIdx.x;
    data[t] = in[t];
    __syncthreads();
    const float mine = data[63 - t];
    AFTER(__syncthreads();)
    if (t == 0) ASM("st.bulk.weak.shared::cta [%0], 256, 0;" ::"r"(at(data)) : "memory");
    __syncthreads();
    out[t] = mine + data[t];
}
