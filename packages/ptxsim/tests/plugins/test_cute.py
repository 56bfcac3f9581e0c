"""`ptxsim.cute()` and `ptxsim cute`: CuTe DSL on tensors of the CPU, with a verdict for each launch."""

import ctypes
import platform

import pytest

from ptxsim.plugins.redirected import redirected

PLUGIN, COMPILER = "cute", "cutlass"
SCRIPT = """
import cutlass, torch
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, by: cutlass.Float32):
    at = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    if at < cute.size(x):
        y[at] = x[at] * by

@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, by: cutlass.Float32):
    scale_kernel(x, y, by).launch(grid=[2, 1, 1], block=[64, 1, 1])

@cute.kernel
def turn_kernel(y: cute.Tensor, fenced: cutlass.Constexpr):
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64))
    at = cute.arch.thread_idx()[0]
    shared[at] = cutlass.Float32(at)
    if cutlass.const_expr(fenced):
        cute.arch.sync_threads()
    y[at] = shared[63 - at]

@cute.jit
def turn(y: cute.Tensor, fenced: cutlass.Constexpr):
    turn_kernel(y, fenced).launch(grid=[1, 1, 1], block=[64, 1, 1])
"""


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_launch_writes_the_tensor_and_is_checked(kernels, order):
    import torch

    import ptxsim

    with ptxsim.cute(order=order, quiet=True) as session:
        x, y = torch.arange(100, dtype=torch.float32, device="cuda"), torch.zeros(100, device="cuda:0")
        kernels.scale(kernels.from_dlpack(x), kernels.from_dlpack(y), 2.5)
    assert x.device.type == "cpu" and torch.equal(y, x * 2.5)
    (record,) = session.launches
    assert (record.verdict, record.grid, record.block) == ("clean", (2, 1, 1), (64, 1, 1))
    assert session.verdict == "clean"


@pytest.mark.parametrize(("fenced", "verdict"), [(True, "clean"), (False, "error")])
def test_a_race_is_found_and_names_the_line(kernels, fenced, verdict):
    import torch

    import ptxsim

    y = torch.zeros(64)
    with ptxsim.cute(quiet=True) as session:
        kernels.turn(kernels.from_dlpack(y), fenced)
    assert session.verdict == verdict
    if verdict == "error":
        assert "cute_kernels_for_test.py" in str(session.launches[0].findings[0])


def test_a_fault_that_a_chip_reports_is_raised(kernels):
    import torch
    from cutlass.base_dsl.common import DSLCudaRuntimeError

    import ptxsim

    x, y = (kernels.from_dlpack(torch.zeros(n)) for n in (100, 32))
    with ptxsim.cute(quiet=True) as session, pytest.raises(DSLCudaRuntimeError):
        kernels.scale(x, y, 1.0)
    assert session.verdict == "error" and session.launches[0].findings[0].kind == "out-of-bounds"


def test_outside_of_the_block_nothing_is_changed(kernels):
    import cutlass.testing
    import torch
    from cutlass.base_dsl.compiler import Compiler

    import ptxsim

    def things():
        return cutlass.testing.benchmark, Compiler.compile, torch.cuda.is_available

    before = things()
    with ptxsim.cute(quiet=True):
        assert things() != before
    assert things() == before


def test_the_command_runs_a_script(kernels, command, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT + "import sys\nx, y = torch.ones(64), torch.zeros(int(sys.argv[1]))\n"
        "scale(from_dlpack(x), from_dlpack(y), 2.0)\nprint(y.sum().item())\n"
    )
    done = command(PLUGIN, str(script), "64")
    assert (done.returncode, done.stdout) == (0, "128.0\n") and "1 clean" in done.stderr
    done = command(PLUGIN, str(script), "32")
    assert done.returncode == 1 and "1 error" in done.stderr and "typer" not in done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="host code is redirected on x86-64 only")
def test_functions_are_redirected_inside_the_block_only():
    library, kind = ctypes.CDLL("libm.so.6"), ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    cbrt = kind(ctypes.cast(library.cbrt, ctypes.c_void_p).value)
    assert round(cbrt(27.0), 9) == 3
    with redirected(library, {"cbrt": kind(lambda x: x + 1)}):
        assert cbrt(27.0) == 28
    assert round(cbrt(27.0), 9) == 3
