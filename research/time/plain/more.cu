// Kernels as a student would write them, of the fourth round: products with more numbers a thread and by dp4a;
// matrix-vector; softmax; a step of the heat equation; bodies that attract each other. Extents are whole tiles.
#include <stdint.h>

// D = A B in float32. Tiles of 128 x 128 x 8, 8 x 8 numbers in each of 256 threads, the next tile fetched ahead.
extern "C" __global__ void registers(const float *A, const float *B, float *D, int M, int N, int K) {
  __shared__ __align__(16) float As[2][8][128], Bs[2][8][128];
  int tid = threadIdx.x, tx = tid % 16 * 4, ty = tid / 16 * 4;
  int ar = tid / 2, ac = tid % 2 * 4, br = tid / 32, bc = tid % 32 * 4;
  const float *a = A + (blockIdx.y * 128 + ar) * K + ac, *b = B + br * N + blockIdx.x * 128 + bc;
  float acc[8][8] = {};
  float4 nexta = *(const float4 *)a, nextb = *(const float4 *)b;
  for (int k = 0; k < K; k += 8) {
    int s = k / 8 % 2;
    As[s][ac][ar] = nexta.x;
    As[s][ac + 1][ar] = nexta.y;
    As[s][ac + 2][ar] = nexta.z;
    As[s][ac + 3][ar] = nexta.w;
    *(float4 *)&Bs[s][br][bc] = nextb;
    __syncthreads();
    if (k + 8 < K) {
      nexta = *(const float4 *)(a + k + 8);
      nextb = *(const float4 *)(b + (k + 8) * N);
    }
    for (int kk = 0; kk < 8; kk++) {
      float4 p[2] = {*(float4 *)&As[s][kk][ty], *(float4 *)&As[s][kk][ty + 64]};
      float4 q[2] = {*(float4 *)&Bs[s][kk][tx], *(float4 *)&Bs[s][kk][tx + 64]};
      const float *x = (const float *)p, *y = (const float *)q;
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
          acc[i][j] += x[i] * y[j];
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      int row = blockIdx.y * 128 + ty + i % 4 + i / 4 * 64, col = blockIdx.x * 128 + tx + j * 16;
      *(float4 *)&D[row * N + col] = make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
    }
}

// D = A B^T of bytes, four products an instruction. Tiles of 64 x 64 x 32, 4 x 4 numbers a thread.
extern "C" __global__ void bytes(const int8_t *A, const int8_t *B, float *D, int M, int N, int K) {
  __shared__ int As[8][65], Bs[8][65];
  int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
  int acc[4][4] = {};
  for (int k = 0; k < K; k += 32) {
    for (int i = tid; i < 64 * 8; i += 256) {
      As[i % 8][i / 8] = *(const int *)&A[(blockIdx.y * 64 + i / 8) * K + k + i % 8 * 4];
      Bs[i % 8][i / 8] = *(const int *)&B[(blockIdx.x * 64 + i / 8) * K + k + i % 8 * 4];
    }
    __syncthreads();
    for (int kk = 0; kk < 8; kk++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          acc[i][j] = __dp4a(As[kk][ty + 16 * i], Bs[kk][tx + 16 * j], acc[i][j]);
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      D[(blockIdx.y * 64 + ty + 16 * i) * N + blockIdx.x * 64 + tx + 16 * j] = acc[i][j];
}

// y = A x in float32, a warp for each row, eight rows a CTA.
extern "C" __global__ void matvec(const float *A, const float *x, float *y, int K) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const float4 *a = (const float4 *)(A + (long)row * K), *v = (const float4 *)x;
  float sum = 0;
  for (int i = lane; i < K / 4; i += 32) {
    float4 p = a[i], q = v[i];
    sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
  }
  for (int step = 16; step; step /= 2)
    sum += __shfl_xor_sync(~0u, sum, step);
  if (lane == 0)
    y[row] = sum;
}

// What all 256 threads get: the largest, or the sum, of their numbers.
__device__ float together(float mine, bool largest) {
  __shared__ float of_warp[8];
  for (int step = 16; step; step /= 2) {
    float other = __shfl_xor_sync(~0u, mine, step);
    mine = largest ? fmaxf(mine, other) : mine + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = of_warp[0];
  for (int i = 1; i < 8; i++)
    mine = largest ? fmaxf(mine, of_warp[i]) : mine + of_warp[i];
  return mine;
}

// Softmax of a row in three passes over it, a CTA for each row.
extern "C" __global__ void softmax(const float *x, float *y, int W) {
  x += (long)blockIdx.x * W, y += (long)blockIdx.x * W;
  float top = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < W; i += 256)
    top = fmaxf(top, x[i]);
  top = together(top, true);
  for (int i = threadIdx.x; i < W; i += 256)
    sum += __expf(x[i] - top);
  sum = 1 / together(sum, false);
  for (int i = threadIdx.x; i < W; i += 256)
    y[i] = __expf(x[i] - top) * sum;
}

// A step of the heat equation: 32 x 32 cells a CTA with their neighbours in shared memory, zeros outside.
extern "C" __global__ void heat(const float *x, float *y, int H, int W) {
  __shared__ float tile[34][34];
  int left = blockIdx.x * 32 - 1, top = blockIdx.y * 32 - 1;
  for (int i = threadIdx.x; i < 34 * 34; i += 256) {
    int r = top + i / 34, c = left + i % 34;
    tile[i / 34][i % 34] = r >= 0 && r < H && c >= 0 && c < W ? x[r * W + c] : 0;
  }
  __syncthreads();
  int col = threadIdx.x % 32 + 1;
  for (int row = threadIdx.x / 32 + 1; row <= 32; row += 8) {
    float here = tile[row][col];
    float around = tile[row - 1][col] + tile[row + 1][col] + tile[row][col - 1] + tile[row][col + 1];
    y[(top + row) * W + left + col] = here + 0.2f * (around - 4 * here);
  }
}

// Accelerations of N softened bodies (x, y, z, mass), 128 of them at a time in shared memory.
extern "C" __global__ void bodies(const float4 *x, float4 *y, int N) {
  __shared__ float4 some[128];
  float4 here = x[blockIdx.x * 128 + threadIdx.x];
  float ax = 0, ay = 0, az = 0;
  for (int first = 0; first < N; first += 128) {
    some[threadIdx.x] = x[first + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 128; i++) {
      float4 other = some[i];
      float dx = other.x - here.x, dy = other.y - here.y, dz = other.z - here.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float pull = other.w * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = make_float4(ax, ay, az, 0);
}
