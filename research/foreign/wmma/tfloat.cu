// C = A B of float32 in tf32; the elements of the fragments are rounded, one by one.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void tfloat(const float *a, const float *b, float *c, int n, int k) {
  int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 8) {
    wmma::load_matrix_sync(left, a + row * k + i, k);
    wmma::load_matrix_sync(right, b + i * n + column, n);
    for (int j = 0; j < left.num_elements; j++)
      left.x[j] = wmma::__float_to_tf32(left.x[j]);
    for (int j = 0; j < right.num_elements; j++)
      right.x[j] = wmma::__float_to_tf32(right.x[j]);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
