"""The arithmetic that the numba text of a `ScalarOp` may use."""
