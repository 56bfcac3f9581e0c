__global__ void sums(const float* in, float* out) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = in[blockIdx.x * 256 + t];
  for (int step = 128; step > 0; step /= 2)
    if (t < step) tile[t] += tile[t + step];
  if (t == 0) out[blockIdx.x] = tile[0];
}
