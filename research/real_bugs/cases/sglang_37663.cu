// source: sgl-project/sglang#37663, 2026-09-02
// link: https://github.com/sgl-project/sglang/pull/37663
// wrong: threads search prefix sums in shared memory that others may not have stored yet
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ u32 prefix[64];
    const u32 t = threadIdx.x;
    if (t < 64) prefix[t] = 4 * t;
    AFTER(__syncthreads();)
    u32 low = 0, high = 63;
    while (low < high) {
        const u32 mid = (low + high) / 2;
        if (prefix[mid] < t) low = mid + 1;
        else high = mid;
    }
    out[t] = low;
}
