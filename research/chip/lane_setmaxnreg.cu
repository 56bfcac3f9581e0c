// What setmaxnreg does when some lanes of each warp execute it. PTX ISA 9.7.19.5 requires all of the warpgroup.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o lanes research/chip/lane_setmaxnreg.cu
//     ./lanes DEC INC WARPS    masks of lanes that execute each; how many warps of the last warpgroup execute dec
//
// An H200, 30 November 2026: with each of 5 masks for dec and 4 for inc, any lane counts for its warp, and inc goes on
// as soon as all four warps have executed dec; with three warps or one it waits for ever.

#include <cstdio>
#include <cstdlib>

__global__ void __launch_bounds__(384, 1) pool(unsigned dec, unsigned inc, int warps, int *out) {
  bool mine = threadIdx.x >= 256;
  bool comes = (mine ? dec : inc) >> threadIdx.x % 32 & 1;
  __syncthreads();
  if (mine) {
    __nanosleep(20000);  // inc has to wait for what is given back here
    if (comes && threadIdx.x / 32 < 8 + warps) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  } else {
    if (comes) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  }
  out[threadIdx.x] = threadIdx.x;
}

int main(int, char **told) {
  int *out, sum = 0, got[384];
  cudaMalloc(&out, sizeof got);
  pool<<<1, 384>>>(strtoul(told[1], 0, 0), strtoul(told[2], 0, 0), atoi(told[3]), out);
  const char *text = cudaGetErrorString(cudaDeviceSynchronize());
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  for (int value : got) sum += value;
  printf("%s %s\n", text, sum == 384 * 383 / 2 ? "right" : "wrong");
}
