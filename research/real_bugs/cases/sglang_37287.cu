// source: sgl-project/sglang#37287, 2026-08-31
// link: https://github.com/sgl-project/sglang/pull/37287
// wrong: partial sums are stored over the operand tile before every warp has read its part of it
// finds: race:
// launch: threads=128 target=sm_90a
KERNEL(128) {
    __shared__ alignas(16) float4 a[128];
    float *c = (float *)a;
    const u32 t = threadIdx.x;
    a[t] = ((const float4 *)in)[t];
    bar(1, 128);
    const float4 left = a[t], right = a[t ^ 127];
    const float sum = left.x * right.x + left.y * right.y;
    AFTER(bar(1, 128);)
    c[t] = sum;
    bar(1, 128);
    out[t] = c[t] + c[t ^ 64];
}
