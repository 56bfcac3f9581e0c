"""Options and fixtures of the step tests.

    pytest tests/test_step03.py -xvs            all default sizes of step 3
    pytest tests -k 1024 --device cuda          one size, on a GPU
    pytest tests --kernels other.py --order adverse --full

A test gets its sizes from the rubric; the ids contain them. Sizes above 1024x1024x1024 run on the simulator
only with --full, except the uneven ones, which are there to show what square sizes hide; those run in both of
the simulator's orders.
"""

import math
import os
from pathlib import Path

import pytest

try:
    import utils
    from tirxlab.devices import DEVICES, get_device
    from tirxlab.rubric import load_rubric
    from tirxlab.sandbox import Builder
    from tirxlab.steps import read_text
except ImportError as error:
    try:
        from tirxlab.damaged import told
    except ImportError:
        raise SystemExit(f"{error}: this is not the lab's Python; run `. .venv/bin/activate` first") from None
    raise SystemExit(told(error)) from None

ROOT = Path(__file__).resolve().parents[1]
SECONDS = {False: 300, True: 900}  # limit per test, by --full: a kernel that never ends is a failed test
LARGE = 1024**3  # M * N * K
RECORDED = ("ms", "tflops", "reference_tflops")  # of a speed test that passed, in its JUnit report
UNTOUCHED: set[int] = set()  # steps that have failed once as not implemented; their other tests are skipped


def pytest_addoption(parser):
    group = parser.getgroup("lab", "the GEMM lab")
    group.addoption("--device", choices=DEVICES, help="sim or cuda [$LAB_DEVICE, else what the machine has]")
    group.addoption("--kernels", type=Path, default=ROOT / "gemm_kernels.py", help="the kernels file to test")
    group.addoption(
        "--order", help="the simulator's order: program, adverse or a seed [both where they differ most]"
    )
    group.addoption("--full", action="store_true", help="sizes over 1024 too, also on the simulator")


def pytest_configure(config):
    order = config.getoption("--order")
    if order is not None and order not in ("program", "adverse") and not order.isdigit():
        raise pytest.UsageError(f"--order {order}: write program, adverse, or a whole number as a seed")
    kernels = config.getoption("--kernels")
    if not kernels.is_file():
        what = "a folder, not a file" if kernels.is_dir() else "no such file"
        raise pytest.UsageError(f"--kernels {kernels}: {what}")


def pytest_generate_tests(metafunc):
    if "size" in metafunc.fixturenames:
        rubric, step = load_rubric(), metafunc.module.STEP
        timed = "check_speed" in metafunc.fixturenames
        sizes = list(rubric.reference_ms[step]) if timed else rubric.sizes(step)
        metafunc.parametrize("size", sizes, ids=[_text(s) for s in sizes])


def _text(size):
    """1024 for a cube, else MxNxK; `-k 1024` finds it."""
    return str(size[0]) if len(set(size)) == 1 else "x".join(map(str, size))


def pytest_collection_modifyitems(config, items):
    limit = pytest.mark.timeout(SECONDS[config.getoption("--full")])
    here = os.path.dirname(__file__)
    for item in items:
        if os.path.dirname(item.path) == here:
            item.add_marker(limit)
            item.cost = cost_of(config, item)


def cost_of(config, item):
    """Multiply-adds of a test, from which the time left is estimated; None if it will be skipped."""
    size, device = item.callspec.params["size"], get_device(config.getoption("--device")).NAME
    timed = "check_speed" in item.fixturenames and device == "sim"
    return None if timed or is_too_large(config, device, item.module.STEP, size) else math.prod(size)


def is_too_large(config, device, step, size):
    """Whether a size takes too long for the simulator without --full."""
    large = math.prod(size) > LARGE and size not in load_rubric().uneven[step]
    return device == "sim" and large and not config.getoption("--full")


def attempt(action):
    """The action's result; an error about the kernel fails the test, without a traceback through the lab."""
    try:
        return action()
    except (AssertionError, ValueError) as error:  # StepError, BuildError, DeviceError are ValueErrors
        message = str(error)
    pytest.fail(message, pytrace=False)


@pytest.fixture
def device(request):
    """The name of the device under test."""
    return get_device(request.config.getoption("--device")).NAME


@pytest.fixture(scope="session")
def builder(request):
    """Builds the steps of the file under test, in a process of its own."""
    path = request.config.getoption("--kernels")
    with Builder(attempt(lambda: read_text(path)), path.name) as made:
        yield made


@pytest.fixture
def kernel(request, device, size, builder):
    """The kernel of the test's step and size, built by the file under test."""
    config, step = request.config, request.module.STEP
    if is_too_large(config, device, step, size):
        pytest.skip("larger than 1024: add --full")
    if step in UNTOUCHED:
        pytest.skip(f"step {step} is not implemented yet")

    built = builder.build(step, size)
    if built.kind == "untouched":
        UNTOUCHED.add(step)
    if built.printed:
        print(built.printed)
    if built.artifact is None:
        pytest.fail(built.message, pytrace=False)
    return built.artifact


@pytest.fixture
def check_result(request, device, kernel, size):
    """Runs the kernel on random data; fails on findings of severity error and on any wrong element."""

    def check():
        A, B, C = utils.prepare_data(*size, seed=0, device=device)
        for order in orders_of(request, device, size):
            C_out = utils.compile_and_run(kernel, A, B, C, device=device, order=order)
            utils.verify(C_out, A, B)

    return lambda: attempt(check)


def orders_of(request, device, size):
    """The order asked for, else the rubric's orders for this size; a GPU has an order of its own."""
    order = request.config.getoption("--order")
    if order is None:
        return load_rubric().orders(request.module.STEP, size) if device == "sim" else ("program",)
    return (int(order) if order.isdigit() else order,)


@pytest.fixture
def check_speed(request, device, size):
    """Times the kernel against the published reference; skipped, and counted as skipped, on the simulator."""
    if device == "sim":
        pytest.skip("speed not measured on the simulator")
    kernel = request.getfixturevalue("kernel")

    def check():
        timing = utils.check_timing(kernel, request.module.STEP, *size, device=device)
        request.node.user_properties += [(name, getattr(timing, name)) for name in RECORDED]

    return lambda: attempt(check)
