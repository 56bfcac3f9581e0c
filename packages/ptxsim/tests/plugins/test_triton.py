"""`ptxsim.triton()` and `ptxsim triton`: kernels on tensors of the CPU, with a verdict for each launch."""

import pytest

PLUGIN, COMPILER = "triton", "triton"
SCRIPT = """
import torch, triton, triton.language as tl

@triton.jit
def scale(x, y, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * by, mask=at < n)

@triton.autotune([triton.Config({"BLOCK": 4096}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    at, row = tl.arange(0, BLOCK), tl.arange(0, 64)
    a = tl.load(x + row[:, None] * 0 + at[None, :] % n)
    tl.store(y + row, tl.sum(tl.dot(a, a.T), 0))

@triton.jit
def copied(source, target, M, N, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(source, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([0, 0], a.load([0, 0]))

@triton.jit
def followed(addresses, y):
    x = tl.load(addresses).to(tl.pointer_type(tl.float32))
    tl.store(y + tl.arange(0, 32), tl.load(x + tl.arange(0, 32)))
"""


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_launch_writes_the_tensor_and_is_checked(kernels, order):
    import torch

    import ptxsim

    with ptxsim.triton(order=order, quiet=True) as session:
        x, y = torch.arange(100, dtype=torch.float32, device="cuda"), torch.zeros(100, device="cuda:0")
        kernels.scale[(2,)](x, y, 100, 2.5, BLOCK=64)
    assert x.device.type == "cpu" and torch.equal(y, x * 2.5)
    (record,) = session.launches
    assert (record.verdict, record.grid, record.block) == ("clean", (2, 1, 1), (128, 1, 1))
    assert session.verdict == "clean"


def test_a_fault_that_a_chip_reports_is_raised_and_names_the_argument(kernels):
    import torch

    import ptxsim

    x, y = torch.zeros(64), torch.zeros(32)
    with ptxsim.triton(quiet=True) as session, pytest.raises(RuntimeError, match="out-of-bounds"):
        kernels.scale[(1,)](x, y, 64, 1.0, BLOCK=64)
    assert session.verdict == "error" and "end of y" in session.launches[0].findings[0].message


def test_a_tuned_kernel_runs_once_in_the_first_configuration_that_fits(kernels):
    import torch

    import ptxsim

    x, y = torch.ones(64, dtype=torch.float16), torch.zeros(64)
    with ptxsim.triton(quiet=True) as session:
        kernels.tuned[(1,)](x, y, 64)
    assert len(session.launches) == 1 and bool((y == 64 * 64).all())


def test_descriptors_of_the_host_and_of_the_device(kernels):
    import torch
    import triton
    from triton.tools.tensor_descriptor import TensorDescriptor

    import ptxsim

    source, target = torch.randn(64, 64, dtype=torch.float32), torch.zeros(64, 64)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    with ptxsim.triton(quiet=True) as session:
        kernels.copied[(1,)](source, TensorDescriptor.from_tensor(target, [32, 32]), 64, 64, BLOCK=32)
    assert session.verdict == "clean" and torch.equal(target[:32, :32], source[:32, :32])
    assert not target[32:].any()


def test_addresses_in_memory_are_followed(kernels):
    import torch

    import ptxsim

    x, y = torch.randn(32), torch.zeros(32)
    with ptxsim.triton(quiet=True) as session:
        kernels.followed[(1,)](torch.tensor([x.data_ptr()], device="cuda"), y)
    assert torch.equal(x, y) and session.verdict == "clean"


def test_outside_of_the_block_nothing_is_changed(kernels):
    import torch
    import triton

    import ptxsim

    before = triton.testing.do_bench, triton.runtime.driver._active, torch.cuda.get_device_capability
    with ptxsim.triton(quiet=True):
        assert triton.runtime.driver.active.get_current_target().arch == 90
    assert before == (
        triton.testing.do_bench,
        triton.runtime.driver._active,
        torch.cuda.get_device_capability,
    )


def test_the_command_runs_a_script_and_leaves_out_reports_of_speed(kernels, command, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT + "import sys\n"
        "@triton.testing.perf_report(triton.testing.Benchmark(['n'], [1], 'p', ['a'], ['a'], 'speed', {}))\n"
        "def bench(n, p):\n    assert False\n"
        "x, y = torch.ones(64), torch.zeros(int(sys.argv[1]))\n"
        "scale[(1,)](x, y, 64, 2.0, BLOCK=64)\nprint(y.sum().item())\nbench.run()\n"
    )
    done = command(PLUGIN, str(script), "64")
    assert (done.returncode, done.stdout) == (0, "128.0\n")
    assert "not run, as speed is not measured here: speed" in done.stderr and "1 clean" in done.stderr
    done = command(PLUGIN, str(script), "32")
    assert done.returncode == 1 and "1 error" in done.stderr
    assert "line 4, in <module>" not in done.stderr and "typer" not in done.stderr
