// C[i, j]: in how many of 128 k bits row i of A and row j of B are both one.
#include <mma.h>
using namespace nvcuda;
namespace small = wmma::experimental;

extern "C" __global__ void bits(const unsigned *a, const unsigned *b, int *c, int n, int k) {
  int row = blockIdx.y * 8, column = blockIdx.x * 8;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, small::precision::b1, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, small::precision::b1, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int i = 0; i < k; i += 4) {
    wmma::load_matrix_sync(left, a + row * k + i, k * 32);
    wmma::load_matrix_sync(right, b + column * k + i, k * 32);
    wmma::bmma_sync(sum, left, right, sum, small::bmmaBitOpAND);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
