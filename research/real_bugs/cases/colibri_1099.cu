// source: JustVugg/colibri#1099, 2026-08-19
// link: https://github.com/JustVugg/colibri/issues/1099
// wrong: lanes read a tile that other lanes of the warp have just stored, with no __syncwarp in between
// finds: race:
// launch: threads=32 target=sm_80
KERNEL(32) {
    __shared__ float tile_of[256];
    const u32 t = threadIdx.x;
    for (int i = 0; i < 8; i++) tile_of[8 * t + i] = in[8 * t + i];
    AFTER(__syncwarp();)
    for (int z = t; z < 256; z += 32) out[z] = tile_of[z];
}
