#include <cstdio>

__global__ void sums(const float* in, float* out) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = in[blockIdx.x * 256 + t];
  for (int step = 128; step > 0; step /= 2)
    if (t < step) tile[t] += tile[t + step];
  if (t == 0) out[blockIdx.x] = tile[0];
}

int main() {
  float in[1024], out[4], *device;
  for (float& x : in) x = 1;
  cudaMalloc(&device, sizeof in + sizeof out);
  cudaMemcpy(device, in, sizeof in, cudaMemcpyDefault);
  sums<<<4, 256>>>(device, device + 1024);
  cudaError_t error = cudaMemcpy(out, device + 1024, sizeof out, cudaMemcpyDefault);
  printf("%s: %g %g %g %g\n", cudaGetErrorString(error), out[0], out[1], out[2], out[3]);
}
