// source: PyFR/GiMMiK#23, 2026-08-04
// link: https://github.com/PyFR/GiMMiK/pull/23
// wrong: the word that tells the producer the next work item is overwritten by a consumer that is a lap ahead
// finds: race:
// launch: threads=64 target=sm_90a
KERNEL(64) {
    __shared__ u32 work;
    __shared__ u64 posted, taken;
    const u32 t = threadIdx.x;
    if (t == 0) { init(&posted, 1); init(&taken, 32); }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (t < 32) {
            AFTER(if (i) wait(&taken, i - 1 & 1);)
            if (t == 0) { work = words[i] + i; arrive(&posted); }
            __syncwarp();
        } else {
            wait(&posted, i & 1);
            out[32 * i + t] = *(volatile u32 *)&work;
            arrive(&taken);
        }
    }
}
