"""Kernels as functions of numpy, PyTorch and JAX arrays; the GPU paths run in research/chip."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from instructor.solutions.ampere_kernels import build_gemm_pipelined
from instructor.solutions.hopper_kernels import build_gemm_m64n64
from tirxlab.devices import DeviceError
from tirxlab.functions import Function, compiled
from tirxlab.toolchain.build import BuildError


def operands(second, dtype=ml_dtypes.bfloat16):
    """Small integers: every sum is exact."""
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in ((64, 128), second)]


@pytest.fixture(scope="module")
def ampere() -> Function:
    return build_gemm_pipelined(64, 64, 128)


def test_numpy(ampere):
    a, b = operands((64, 128))
    d = ampere(a, b)
    assert d.dtype == np.float32 and np.array_equal(d, a.astype(float) @ b.astype(float).T)


def test_hopper():
    a, b = operands((128, 64))
    assert np.array_equal(build_gemm_m64n64(64, 64, 128)(a, b), a.astype(float) @ b.astype(float))


def test_other_memory_orders_are_copied(ampere):
    a, b = operands((64, 128))
    assert np.array_equal(ampere(np.asfortranarray(a), b), ampere(a, b))


def test_torch_tensors_of_the_cpu_run_on_the_simulator(ampere):
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in operands((64, 128)))
    assert torch.equal(ampere(a, b), a.float() @ b.float().T)


def test_inside_jax_jit(ampere):
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax_tvm_ffi")
    a, b = (jax.numpy.asarray(x) for x in operands((64, 128)))
    with jax.default_device(jax.devices("cpu")[0]):
        d = jax.jit(lambda x, y: ampere(x, y) + 1)(a, b)
    assert np.array_equal(np.asarray(d), np.asarray(a, float) @ np.asarray(b, float).T + 1)


@pytest.mark.parametrize("change, message", [
    (lambda a, b: (a,), r"takes 2 inputs \(A, B_T\), got 1"),
    (lambda a, b: (a[:32], b), r"A has shape \(32, 128\), the kernel was built for \(64, 128\)"),
    (lambda a, b: (a, b.astype(np.float16)), "B_T is float16, the kernel was built for bfloat16"),
])  # fmt: skip
def test_arrays_that_do_not_fit(ampere, change, message):
    with pytest.raises(DeviceError, match=message):
        ampere(*change(*operands((64, 128))))


def test_a_run_that_ends_with_an_error_raises():
    """A grid with three rows of tiles writes past a matrix of two."""
    good = build_gemm_pipelined(128, 64, 128)
    wrong = Function(replace(good.artifact, grid=(1, 3, 1)))
    a, b = operands((64, 128))
    with pytest.raises(DeviceError, match="out-of-bounds"):
        wrong(np.concatenate([a, a]), b)


def test_compiled_names_the_mistake():
    with pytest.raises(BuildError, match="sm_70"):
        compiled(None, "sm_70")
