// D = A B^T by CTAs of four warps: tiles of 64 x 32 in shared memory with padded rows, two by two fragments a
// warp; the result goes through shared memory, where it becomes float16.
#include <mma.h>
using namespace nvcuda;
constexpr int TILE = 64, DEPTH = 32, ROW = DEPTH + 8, OUT = TILE + 4;

extern "C" __global__ void shared(const half *a, const half *b, half *c, int n, int k) {
  __shared__ __align__(128) half left[TILE * ROW], right[TILE * ROW];
  __shared__ __align__(128) float result[TILE * OUT];
  int warp = threadIdx.x / 32, top = blockIdx.y * TILE, first = blockIdx.x * TILE;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
  for (int i = 0; i < 4; i++)
    wmma::fill_fragment(sum[i / 2][i % 2], 0.0f);
  for (int start = 0; start < k; start += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += blockDim.x) {
      int row = i / (DEPTH / 8), column = i % (DEPTH / 8) * 8;
      *(int4 *)&left[row * ROW + column] = *(const int4 *)&a[(top + row) * k + start + column];
      *(int4 *)&right[row * ROW + column] = *(const int4 *)&b[(first + row) * k + start + column];
    }
    __syncthreads();
    for (int depth = 0; depth < DEPTH; depth += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y[2];
      for (int i = 0; i < 2; i++) {
        wmma::load_matrix_sync(x[i], &left[(warp / 2 * 32 + i * 16) * ROW + depth], ROW);
        wmma::load_matrix_sync(y[i], &right[(warp % 2 * 32 + i * 16) * ROW + depth], ROW);
      }
      for (int i = 0; i < 4; i++)
        wmma::mma_sync(sum[i / 2][i % 2], x[i / 2], y[i % 2], sum[i / 2][i % 2]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) {
    float *place = &result[(warp / 2 * 32 + i / 2 * 16) * OUT + warp % 2 * 32 + i % 2 * 16];
    wmma::store_matrix_sync(place, sum[i / 2][i % 2], OUT, wmma::mem_row_major);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x)
    c[(top + i / TILE) * n + first + i % TILE] = __float2half(result[i / TILE * OUT + i % TILE]);
}
