// C = A B^T in bfloat16; C lies by columns in shared memory before each thread stores its rows.
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void bfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  __shared__ __align__(32) float tile[32 * 8];
  int row = blockIdx.y * 32, column = blockIdx.x * 8;
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(left, a + row * k + i, k);
    wmma::load_matrix_sync(right, b + column * k + i, k);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(tile, sum, 32, wmma::mem_col_major);
  __syncwarp();
  for (int i = 0; i < 8; i++)
    c[(row + threadIdx.x) * n + column + i] = tile[i * 32 + threadIdx.x];
}
