// source: NVIDIA/Fuser#3438, 2024-11-18
// link: https://github.com/NVIDIA/Fuser/pull/3438
// wrong: __syncthreads follows cp.async with no wait for the copies
// finds: race|async-pending:
// launch: threads=64 target=sm_80
KERNEL(64) {
    __shared__ alignas(16) float4 data[64];
    const u32 t = threadIdx.x;
    copy16(&data[t], in + 4 * t);
    copy_commit();
    AFTER(copy_wait<0>();)
    __syncthreads();
    out[t] = data[63 - t].x;
    BEFORE(copy_wait<0>();)
}
