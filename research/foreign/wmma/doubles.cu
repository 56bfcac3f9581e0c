// C = A B of float64, all three matrices by columns: as their transposes C' = B' A'.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void doubles(const double *a, const double *b, double *c, int n, int k) {
  int row = blockIdx.x * 8, column = blockIdx.y * 8;  // of C'
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
  wmma::fill_fragment(sum, 0.0);
  for (int i = 0; i < k; i += 4) {
    wmma::load_matrix_sync(left, b + i * n + row, n);
    wmma::load_matrix_sync(right, a + column * k + i, k);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + column * n + row, sum, n, wmma::mem_col_major);
}
