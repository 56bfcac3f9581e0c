// What a CTA barrier does when its threads give different counts in one phase. PTX ISA 9.7.13.1 does not say.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o counts research/chip/barrier_counts.cu
//     ./counts FORM COUNT FORM COUNT LATE    of warp 0 and of warp 1, and which of them comes 20 us later
//
// An H200, 30 November 2026: with counts 32, 64, 96 and 128, in every mixture of the forms and in both orders, an
// illegal instruction; but a warp that fills its own phase (32) and comes first leaves the other one waiting.

#include <cstdio>
#include <cstdlib>

__device__ void come(int form, int count) {
  if (form == 0) asm volatile("bar.sync 1, %0;" ::"r"(count));
  if (form == 1) asm volatile("bar.arrive 1, %0;" ::"r"(count));
  if (form == 2) asm volatile("bar.sync 1;");
  if (form == 3) asm volatile("barrier.sync 1, %0;" ::"r"(count));
  if (form == 4) asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0; bar.red.popc.u32 %0, 1, %0, p; }" ::"r"(count));
}

__global__ void bars(int first, int count, int second, int other, int late) {
  int warp = threadIdx.x / 32;
  __syncthreads();
  if (warp == late) __nanosleep(20000);
  if (warp == 0) come(first, count);
  if (warp == 1) come(second, other);
}

int main(int, char **told) {
  bars<<<1, 128>>>(atoi(told[1]), atoi(told[2]), atoi(told[3]), atoi(told[4]), atoi(told[5]));
  puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
