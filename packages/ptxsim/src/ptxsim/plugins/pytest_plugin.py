"""For pytest: the fixture `ptxsim`, whose launches must be clean in every order of --ptxsim-orders.

def test_add(ptxsim):
    out = np.zeros(32, np.float32)
    ptxsim.launch("add.ptx", "add", block=32, args=[out])  # fails the test on a finding, and tells it
    assert (out == 1).all()
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser) -> None:
    parser.getgroup("ptxsim").addoption(
        "--ptxsim-orders",
        default="program",
        metavar="ORDERS",
        help="orders of completion in which tests with the fixture ptxsim run, such as program,adverse,7",
    )


def _orders(config) -> list[str]:
    return [order.strip() for order in config.getoption("--ptxsim-orders").split(",")]


def pytest_configure(config) -> None:
    for order in _orders(config):
        if order not in ("program", "adverse", "all") and not order.isdecimal():
            what = "program, adverse, all or a seed such as 7, separated by commas"
            raise pytest.UsageError(f"--ptxsim-orders: {what} (got {order!r})")


def pytest_generate_tests(metafunc) -> None:
    if "ptxsim" in metafunc.fixturenames:
        orders = _orders(metafunc.config)
        metafunc.parametrize("ptxsim", orders, indirect=True, ids=[f"order-{order}" for order in orders])


@pytest.fixture
def ptxsim(request) -> Launcher:
    order = getattr(request, "param", "program")
    return Launcher(int(order) if order.isdecimal() else order, request.path.parent)


class Launcher:
    """Loads and launches kernels in one order; a launch that is not clean fails the test."""

    def __init__(self, order: str | int, folder: Path = Path()):
        self.order, self.folder = order, folder
        self.results: list = []

    def load(self, ptx: str | bytes | Path):
        """The LoadedModule of a PTX text or of a file (a Path, or a name that ends in .ptx).

        A file is looked for beside the test, then in the current directory.
        """
        import ptxsim as machine

        text = ptx if isinstance(ptx, bytes | Path) else ptx.strip()
        if isinstance(text, Path) or (isinstance(text, str) and text.endswith(".ptx")):
            beside = self.folder / text
            text = (beside if beside.exists() else Path(text)).read_bytes()
        return machine.load(text)

    def launch(self, ptx, kernel: str, *, allow: tuple[str, ...] = (), **launch):
        """Launches a kernel like LoadedModule.launch and returns the Result; fails the test on any finding.

        ptx: a module, a PTX text or a file. allow: kinds of findings of severity review that do not fail it.
        """
        from ptxsim.report.findings import KINDS

        __tracebackhide__ = True  # the test's own line is what failed
        if unknown := [kind for kind in allow if kind not in KINDS]:
            raise ValueError(f"allow is a tuple of kinds: {', '.join(KINDS)} (got {unknown[0]!r})")
        if "order" in launch:
            raise ValueError("the orders are those of --ptxsim-orders: leave out order")
        try:
            module = ptx if hasattr(ptx, "launch") else self.load(ptx)
            result = module.launch(kernel, order=self.order, **launch)
        except (OSError, ValueError) as wrong:
            raise wrong.with_traceback(None) from None
        self.results.append(result)
        bad = [f for f in result.findings if not (f.severity == "review" and f.kind in allow)]
        if bad:
            told = "\n".join(str(finding) for finding in bad)
            pytest.fail(f"{kernel} is {result.verdict} in order {self.order}:\n{told}", pytrace=False)
        return result
