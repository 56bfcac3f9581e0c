// D = alpha A B + beta C by one warp for each 16 x 16 tile, everything from global memory: the first program with
// tensor cores. Accumulators are scaled element by element.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void naive(const half *a, const half *b, const float *c, float *d, int n, int k,
                                 float alpha, float beta) {
  int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, old;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(left, a + row * k + i, k);
    wmma::load_matrix_sync(right, b + i * n + column, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::load_matrix_sync(old, c + row * n + column, n, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; i++)
    sum.x[i] = alpha * sum.x[i] + beta * old.x[i];
  wmma::store_matrix_sync(d + row * n + column, sum, n, wmma::mem_row_major);
}
