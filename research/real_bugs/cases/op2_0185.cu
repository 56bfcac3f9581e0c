// source: OP-DSL/OP2-Common#185, 2020-12-09
// link: https://github.com/OP-DSL/OP2-Common/issues/185
// wrong: a reduction within a warp reads the sums of other lanes with no __syncwarp between its steps
// finds: race review: nothing orders them
// launch: threads=32 target=sm_80
KERNEL(32) {
    __shared__ float sums[64];
    const u32 t = threadIdx.x;
    volatile float *s = sums;
    s[t] = in[t];
    s[t + 32] = 0;
    for (int d = 16; d; d /= 2) {
        AFTER(__syncwarp();)
        const float other = s[t + d];
        AFTER(__syncwarp();)
        s[t] = s[t] + other;
    }
    if (t == 0) out[0] = s[0];
}
