// source: tile-ai/tilelang#3085, 2026-08-25
// link: https://github.com/tile-ai/tilelang/pull/3085
// wrong: the barrier of an else branch is moved in front of the whole if, so the branch's stores and loads have none
// finds: race:
// launch: threads=128 target=sm_80
KERNEL(128) {
    __shared__ float s[64];
    const u32 t = threadIdx.x;
    const bool first = t == 0 || t >= 33;
    BEFORE(__syncthreads();)
    if (first) out[t] = 0;
    else s[t] = t;
    AFTER(__syncthreads();)
    if (!first) out[t] = s[33 - t];
}
