"""For pytest: the fixture `ptxsim`, whose launches must be clean in every order of --ptxsim-orders.

def test_add(ptxsim):
    out = np.zeros(32, np.float32)
    ptxsim.launch("add.ptx", "add", block=32, args=[out])  # fails the test on an error, with the findings
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


def pytest_generate_tests(metafunc) -> None:
    if "ptxsim" in metafunc.fixturenames:
        orders = [order.strip() for order in metafunc.config.getoption("--ptxsim-orders").split(",")]
        metafunc.parametrize("ptxsim", orders, indirect=True, ids=[f"order-{order}" for order in orders])


@pytest.fixture
def ptxsim(request) -> Launcher:
    order = getattr(request, "param", "program")
    if order not in ("program", "adverse") and not order.isdecimal():
        pytest.fail(f"--ptxsim-orders: program, adverse or a seed such as 7 (got {order!r})", pytrace=False)
    return Launcher(int(order) if order.isdecimal() else order)


class Launcher:
    """Loads and launches kernels in one order; a launch that is not clean fails the test."""

    def __init__(self, order: str | int):
        self.order = order
        self.results: list = []

    def load(self, ptx: str | bytes | Path):
        """The LoadedModule of a PTX text or of a file (a Path, or a name that ends in .ptx)."""
        import ptxsim as machine

        text = ptx if isinstance(ptx, bytes | Path) else ptx.strip()
        if isinstance(text, Path) or (isinstance(text, str) and text.endswith(".ptx")):
            text = Path(text).read_text()
        return machine.load(text)

    def launch(self, ptx, kernel: str, *, allow: tuple[str, ...] = (), **launch):
        """Launches a kernel like LoadedModule.launch and returns the Result; fails the test on any finding.

        ptx: a module, a PTX text or a file. allow: kinds of findings of severity review that do not fail it.
        """
        module = ptx if hasattr(ptx, "launch") else self.load(ptx)
        result = module.launch(kernel, order=self.order, **launch)
        self.results.append(result)
        bad = [f for f in result.findings if not (f.severity == "review" and f.kind in allow)]
        if bad:
            told = "\n".join(str(finding) for finding in bad)
            pytest.fail(f"{kernel} is {result.verdict} in order {self.order}:\n{told}", pytrace=False)
        return result
