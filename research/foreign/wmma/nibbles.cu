// C = A B^T of numbers of four bits with sign, eight to a word.
#include <mma.h>
using namespace nvcuda;
namespace small = wmma::experimental;

extern "C" __global__ void nibbles(const unsigned *a, const unsigned *b, int *c, int n, int k) {
  int row = blockIdx.y * 8, column = blockIdx.x * 8;
  wmma::fragment<wmma::matrix_a, 8, 8, 32, small::precision::s4, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, small::precision::s4, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int i = 0; i < k; i += 4) {
    wmma::load_matrix_sync(left, a + row * k + i, k * 8);
    wmma::load_matrix_sync(right, b + column * k + i, k * 8);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
