// Matrix products as a student would write them first: D = A B (A (M, K), B (K, N)) in float32, or D = A B^T
// (A (M, K), B (N, K)) in float16 with float32 accumulators, by mma.sync. Extents are whole tiles.
#include <cuda_fp16.h>
#include <stdint.h>

// One thread, one number; everything comes from global memory.
extern "C" __global__ void naive(const float *A, const float *B, float *D, int M, int N, int K) {
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < K; k++)
    sum += A[row * K + k] * B[k * N + col];
  D[row * N + col] = sum;
}

// Tiles of 32 x 32 in shared memory, one thread for each number.
extern "C" __global__ void tiled(const float *A, const float *B, float *D, int M, int N, int K) {
  __shared__ float As[32][32], Bs[32][32];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
  float sum = 0;
  for (int k = 0; k < K; k += 32) {
    As[y][x] = A[row * K + k + x];
    Bs[y][x] = B[(k + y) * N + col];
    __syncthreads();
    for (int i = 0; i < 32; i++)
      sum += As[y][i] * Bs[i][x];
    __syncthreads();
  }
  D[row * N + col] = sum;
}

// Tiles of 64 x 64, 4 x 4 numbers in each of 256 threads.
extern "C" __global__ void blocked(const float *A, const float *B, float *D, int M, int N, int K) {
  __shared__ float As[64][17], Bs[16][64];
  int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
  float acc[4][4] = {};
  for (int k = 0; k < K; k += 16) {
    for (int i = tid; i < 64 * 16; i += 256)
      As[i / 16][i % 16] = A[(blockIdx.y * 64 + i / 16) * K + k + i % 16];
    for (int i = tid; i < 16 * 64; i += 256)
      Bs[i / 64][i % 64] = B[(k + i / 64) * N + blockIdx.x * 64 + i % 64];
    __syncthreads();
    for (int kk = 0; kk < 16; kk++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          acc[i][j] += As[ty * 4 + i][kk] * Bs[kk][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      D[(blockIdx.y * 64 + ty * 4 + i) * N + blockIdx.x * 64 + tx + 16 * j] = acc[i][j];
}

__device__ void mma(float *d, const uint32_t *a, const uint32_t *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
               "{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ uint32_t pair(const half *p) { return *reinterpret_cast<const uint32_t *>(p); }

// Tiles of 64 x 64 x 32, four warps of 32 x 32, fragments by plain loads, copies through registers.
extern "C" __global__ void fragments(const half *A, const half *B, float *D, int M, int N, int K) {
  __shared__ __align__(16) half As[64][40];
  __shared__ __align__(16) half Bs[64][40];
  int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, g = lane / 4, t = lane % 4;
  int wm = warp / 2 * 32, wn = warp % 2 * 32;
  float acc[2][4][4] = {};
  for (int k = 0; k < K; k += 32) {
    for (int i = tid; i < 64 * 4; i += 128) {
      int r = i / 4, c = i % 4 * 8;
      *(uint4 *)&As[r][c] = *(const uint4 *)&A[(blockIdx.y * 64 + r) * K + k + c];
      *(uint4 *)&Bs[r][c] = *(const uint4 *)&B[(blockIdx.x * 64 + r) * K + k + c];
    }
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t a[2][4], b[4][2];
      for (int i = 0; i < 2; i++)
        for (int r = 0; r < 4; r++)
          a[i][r] = pair(&As[wm + i * 16 + g + r % 2 * 8][kk + t * 2 + r / 2 * 8]);
      for (int j = 0; j < 4; j++)
        for (int r = 0; r < 2; r++)
          b[j][r] = pair(&Bs[wn + j * 8 + g][kk + t * 2 + r * 8]);
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
          mma(acc[i][j], a[i], b[j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++)
      for (int r = 0; r < 4; r++)
        D[(blockIdx.y * 64 + wm + i * 16 + g + r / 2 * 8) * N + blockIdx.x * 64 + wn + j * 8 + t * 2 + r % 2] =
            acc[i][j][r];
}

__device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void copy16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

__device__ void load_matrices(uint32_t *r, const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)));
}

// Tiles of 128 x 128 x 32, eight warps of 64 x 32, two stages of cp.async, ldmatrix, padded rows.
extern "C" __global__ void staged(const half *A, const half *B, float *D, int M, int N, int K) {
  __shared__ __align__(16) half As[2][128][40];
  __shared__ __align__(16) half Bs[2][128][40];
  int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, g = lane / 4, t = lane % 4;
  int wm = warp / 4 * 64, wn = warp % 4 * 32;
  float acc[4][4][4] = {};
  auto fetch = [&](int stage, int k) {
    for (int i = tid; i < 128 * 4; i += 256) {
      int r = i / 4, c = i % 4 * 8;
      copy16(&As[stage][r][c], &A[(blockIdx.y * 128 + r) * K + k + c]);
      copy16(&Bs[stage][r][c], &B[(blockIdx.x * 128 + r) * K + k + c]);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0);
  for (int k = 0; k < K; k += 32) {
    int stage = k / 32 % 2;
    if (k + 32 < K)
      fetch(stage ^ 1, k + 32);
    else
      asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t a[4][4], b[2][4];
      for (int i = 0; i < 4; i++)
        load_matrices(a[i], &As[stage][wm + i * 16 + lane % 16][kk + lane / 16 * 8]);
      for (int j = 0; j < 2; j++)
        load_matrices(b[j], &Bs[stage][wn + j * 16 + lane % 8 + lane / 16 * 8][kk + lane / 8 % 2 * 8]);
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          mma(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      for (int r = 0; r < 2; r++) {
        float2 *to = (float2 *)&D[(blockIdx.y * 128 + wm + i * 16 + g + r * 8) * N + blockIdx.x * 128 + wn +
                                  j * 8 + t * 2];
        *to = make_float2(acc[i][j][r * 2], acc[i][j][r * 2 + 1]);
      }
}
