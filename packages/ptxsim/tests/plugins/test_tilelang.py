"""`ptxsim.tilelang()` and `ptxsim tilelang`: kernels on tensors of the CPU, a verdict for each launch."""

import pytest

PLUGIN, COMPILER = "tilelang", "tilelang"
SCRIPT = """
import tilelang, torch
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def scale(n, by):
    @T.prim_func
    def kernel(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as block:
            for i in T.Parallel(64):
                y[block * 64 + i] = x[block * 64 + i] * by
    return kernel

@tilelang.jit(out_idx=[-1])
def product(m, n, k):
    @T.prim_func
    def kernel(
        a: T.Tensor((m, k), "float16"), b: T.Tensor((k, n), "float16"), c: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(1, threads=128) as block:
            a_shared, b_shared = T.alloc_shared((m, k), "float16"), T.alloc_shared((k, n), "float16")
            c_local = T.alloc_fragment((m, n), "float32")
            T.clear(c_local)
            T.copy(a[0, 0], a_shared)
            T.copy(b[0, 0], b_shared)
            T.gemm(a_shared, b_shared, c_local)
            T.copy(c_local, c[0, 0])
    return kernel

@tilelang.jit(out_idx=[-1])
def with_memory_of_its_own(n):
    @T.prim_func
    def kernel(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        between = T.alloc_global((n,), "float32")
        with T.Kernel(1, threads=n) as block:
            for i in T.Parallel(n):
                between[i] = x[i] + 1.0
                y[i] = between[i]
    return kernel
"""


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_launch_gives_a_tensor_and_is_checked(kernels, order):
    import torch

    import ptxsim

    with ptxsim.tilelang(order=order, quiet=True) as session:
        x = torch.arange(128, dtype=torch.float32, device="cuda")
        y = kernels.scale(128, 2.5)(x)
    assert x.device.type == "cpu" and torch.equal(y, x * 2.5)
    (record,) = session.launches
    assert (record.verdict, record.grid, record.block) == ("clean", (2, 1, 1), (64, 1, 1))


def test_tensor_maps_reach_the_tensors(kernels):
    import torch

    import ptxsim

    a, b = torch.randn(64, 64).half(), torch.randn(64, 64).half()
    with ptxsim.tilelang(quiet=True) as session:
        c = kernels.product(64, 64, 64)(a, b)
    assert session.verdict in ("clean", "review") and torch.allclose(c, a.float() @ b.float(), atol=1e-2)


def test_a_fault_that_a_chip_reports_is_raised(kernels):
    import torch

    import ptxsim

    with ptxsim.tilelang(quiet=True) as session, pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        kernels.scale(128, 2.5)(torch.zeros(32))
    assert session.verdict == "error"


def test_a_kernel_for_which_the_host_passes_too_few_arguments(kernels):
    import torch

    import ptxsim

    with ptxsim.tilelang(quiet=True) as session, pytest.raises(RuntimeError, match="INVALID_VALUE"):
        kernels.with_memory_of_its_own(64)(torch.zeros(64))
    assert "takes 3 arguments (got 2)" in session.launches[0].findings[0].message


def test_the_command_runs_a_script(kernels, command, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT + "import sys\nprint(scale(64, 2.0)(torch.ones(int(sys.argv[1]))).sum().item())\n"
    )
    done = command(PLUGIN, str(script), "64")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "128.0") and "1 clean" in done.stderr
