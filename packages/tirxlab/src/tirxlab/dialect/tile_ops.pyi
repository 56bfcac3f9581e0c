# For editors: the tile operations of TVM that `Tx` passes on. Docstrings as in __init__.pyi.
from typing import Any

class TileOps:
    """TVM's tile operations, with the scope of the enclosing `with`."""

    def add(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a + b.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def sub(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a - b.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def mul(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a * b.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def fdiv(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a / b.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def fma(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a * b + c.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def max(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = the maximum over axes; on scalars, the larger of two values.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def min(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = the minimum over axes; on scalars, the smaller of two values.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def maximum(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = max(a, b).

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def minimum(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = min(a, b).

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def exp(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = e ** src.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def exp2(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = 2 ** src.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def log2(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = log2(src).

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def sqrt(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = square root of src.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def reciprocal(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = 1 / src.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def silu(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = src * sigmoid(src).

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def select(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a where a condition holds, else b.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def fill(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a value.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def memset(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = a value.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def zero(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = 0.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def sum(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = sum of src over axes.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def unary_reduce(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = an elementwise operation, then a reduction.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def binary_reduce(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = an operation on two tiles, then a reduction.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def binary_chain(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = two elementwise operations in a row.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def reduce_negate(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = minus a reduction.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def permute_layout(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: dst = src in another layout.

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """

    def gemm(self, *args: Any, **options: Any) -> Any:
        """Tile operation of TVM: D = A @ B + C by the threads of the scope (not tcgen05).

        Lowers to: a loop over the elements that each thread holds.
        Who: all threads of the enclosing scope.
        Then: a barrier before other threads read the result.
        """
