// Kernels as a student would write them, of the fifth round: a transposition, a blur with a halo in shared memory,
// products with 4 x 4 numbers a thread and by pairs of halves, prefix sums, the Mandelbrot set. Extents are whole tiles.
#include <cuda_fp16.h>

// y = the transposed x, 32 x 32 numbers a CTA; a column of padding keeps the reads apart.
extern "C" __global__ void turned(const float *x, float *y, int H, int W) {
  __shared__ float tile[32][33];
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * W + col];
  __syncthreads();
  col = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    y[(row + i) * H + col] = tile[threadIdx.x][threadIdx.y + i];
}

// A blur of 5 x 5 points, its weights 1 4 6 4 1 both ways; the border repeats itself.
extern "C" __global__ void blur(const float *x, float *y, int H, int W) {
  __shared__ float tile[36][36];
  const float weight[5] = {1 / 16.f, 4 / 16.f, 6 / 16.f, 4 / 16.f, 1 / 16.f};
  int left = blockIdx.x * 32 - 2, top = blockIdx.y * 32 - 2;
  for (int i = threadIdx.y; i < 36; i += 8)
    for (int j = threadIdx.x; j < 36; j += 32) {
      int row = min(max(top + i, 0), H - 1), col = min(max(left + j, 0), W - 1);
      tile[i][j] = x[row * W + col];
    }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) {
    float sum = 0;
    for (int dy = 0; dy < 5; dy++)
      for (int dx = 0; dx < 5; dx++)
        sum += weight[dy] * weight[dx] * tile[i + dy][threadIdx.x + dx];
    y[(blockIdx.y * 32 + i) * W + blockIdx.x * 32 + threadIdx.x] = sum;
  }
}

// D = A B in float32. Tiles of 64 x 64 x 16, 4 x 4 numbers in each of 256 threads.
extern "C" __global__ void tiles(const float *A, const float *B, float *D, int M, int N, int K) {
  __shared__ float As[16][64], Bs[16][64];
  int tid = threadIdx.x, tx = tid % 16 * 4, ty = tid / 16 * 4;
  float acc[4][4] = {};
  for (int k = 0; k < K; k += 16) {
    for (int i = tid; i < 64 * 16; i += 256) {
      As[i % 16][i / 16] = A[(blockIdx.y * 64 + i / 16) * K + k + i % 16];
      Bs[i / 64][i % 64] = B[(k + i / 64) * N + blockIdx.x * 64 + i % 64];
    }
    __syncthreads();
    for (int kk = 0; kk < 16; kk++) {
      float a[4], b[4];
      for (int i = 0; i < 4; i++)
        a[i] = As[kk][ty + i], b[i] = Bs[kk][tx + i];
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          acc[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      D[(blockIdx.y * 64 + ty + i) * N + blockIdx.x * 64 + tx + j] = acc[i][j];
}

// D = A B^T of halves, two products an instruction. Tiles of 64 x 64 x 32; sums of a tile are halves, the others float.
extern "C" __global__ void halves(const __half *A, const __half *B, __half *D, int M, int N, int K) {
  __shared__ __half2 As[64][17], Bs[64][17];
  int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
  float acc[4][4] = {};
  for (int k = 0; k < K; k += 32) {
    for (int i = tid; i < 64 * 16; i += 256) {
      As[i / 16][i % 16] = *(const __half2 *)&A[(blockIdx.y * 64 + i / 16) * K + k + i % 16 * 2];
      Bs[i / 16][i % 16] = *(const __half2 *)&B[(blockIdx.x * 64 + i / 16) * K + k + i % 16 * 2];
    }
    __syncthreads();
    __half2 sum[4][4] = {};
    for (int kk = 0; kk < 16; kk++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          sum[i][j] = __hfma2(As[ty + 16 * i][kk], Bs[tx + 16 * j][kk], sum[i][j]);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++)
        acc[i][j] += __low2float(sum[i][j]) + __high2float(sum[i][j]);
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      D[(blockIdx.y * 64 + ty + 16 * i) * N + blockIdx.x * 64 + tx + 16 * j] = __float2half(acc[i][j]);
}

// Prefix sums of a row, 1024 numbers at a time: four in a thread, those of a warp by shuffles, then the warps.
extern "C" __global__ void prefix(const float *x, float *y, int W) {
  __shared__ float of_warp[8];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float before = 0;
  for (int first = 0; first < W; first += 1024) {
    long at = (long)blockIdx.x * W + first + threadIdx.x * 4;
    float4 v = *(const float4 *)&x[at];
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    float sum = v.w;
    for (int step = 1; step < 32; step *= 2) {
      float other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step)
        sum += other;
    }
    if (lane == 31)
      of_warp[warp] = sum;
    __syncthreads();
    float mine = before + sum - v.w;
    for (int i = 0; i < 8; i++) {
      if (i < warp)
        mine += of_warp[i];
      before += of_warp[i];
    }
    *(float4 *)&y[at] = make_float4(v.x + mine, v.y + mine, v.z + mine, v.w + mine);
    __syncthreads();
  }
}

// The Mandelbrot set: after how many turns each point has left the circle, `limit` at most.
extern "C" __global__ void escape(int *y, int H, int W, int limit) {
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  float cx = -2 + 2.5f * col / W, cy = -1.25f + 2.5f * row / H, zx = 0, zy = 0;
  int turn = 0;
  while (turn < limit && zx * zx + zy * zy < 4) {
    float next = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = next;
    turn++;
  }
  y[row * W + col] = turn;
}
