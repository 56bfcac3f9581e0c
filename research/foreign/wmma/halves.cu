// C = max(A B + bias, 0) with accumulators of float16: the bias is loaded as a matrix whose rows are all the same.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void halves(const half *a, const half *b, const half *bias, half *c, int n, int k) {
  int row = blockIdx.y * 8, column = blockIdx.x * 32;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 8, 32, 16, half> sum;
  wmma::load_matrix_sync(sum, bias + column, 0, wmma::mem_row_major);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(left, a + row * k + i, k);
    wmma::load_matrix_sync(right, b + i * n + column, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; i++)
    sum.x[i] = __hmax(sum.x[i], __float2half(0.0f));
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
