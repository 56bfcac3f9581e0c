// source: NVIDIA/cutlass#2502, 2025-07-24
// link: https://github.com/NVIDIA/cutlass/pull/2502
// wrong: as many groups may be under way as were issued, so that a stage is handed over before its copy is done
// finds: race: cp\.async
// launch: threads=128 target=sm_80
KERNEL(128) {
    __shared__ alignas(16) float data[4][512];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 3; i++) { copy16(&data[i][4 * t], in + 512 * i + 4 * t); copy_commit(); }
    for (int i = 0; i < 6; i++) {
        BEFORE(copy_wait<3>();)
        AFTER(copy_wait<2>();)
        __syncthreads();
        out[128 * i + t] = data[i % 4][511 - t];
        copy16(&data[(i + 3) % 4][4 * t], in + 512 * (i + 3) + 4 * t);
        copy_commit();
    }
    copy_wait<0>();
}
