// source: mlc-ai/TIRx-kernels#202, 2026-09-16
// link: https://github.com/mlc-ai/TIRx-kernels/pull/202
// wrong: rows outside are zeroed by plain stores, but the barrier is told of the cp.async alone
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ u64 full;
    __shared__ alignas(16) float4 data[32];
    const u32 t = threadIdx.x;
    if (t == 0) init(&full, 32);
    __syncthreads();
    if (t < 32) {
        const bool inside = t < 24;
        BEFORE(if (inside) copy16(&data[t], in + 4 * t); else data[t] = make_float4(0, 0, 0, 0);)
        AFTER(copy16(&data[t], in + 4 * (inside ? t : 0), inside ? 16 : 0);)
        copy_arrive(&full);
    } else {
        wait(&full, 0);
        out[t] = data[63 - t].x;
    }
}
