"""A pytest plugin: on a terminal, a progress bar with the time left in place of the dots.

A test weighs as much as it will compute, by its `cost` from `tests/conftest.py` (in multiply-adds; None if
it will be skipped), plus a build. If tests run in several processes, only their ids are known.
"""

import os

import pytest
from rich.progress import Progress

from tirxlab.cli.common import Paper
from tirxlab.cli.runs import BUILD_COST, bar_on


class Bar:
    def __init__(self, terminal: int):
        """`terminal`: a duplicated file descriptor, because pytest captures standard error."""
        self.file = os.fdopen(terminal, "w")
        self.bar: Progress | None = None
        self.costs: dict[str, float] = {}

    def begin(self, costs: dict[str, float]) -> None:
        self.costs = costs
        self.bar = bar = bar_on(Paper(file=self.file))
        self.task = bar.add_task("testing", total=sum(costs.values()), count=0, jobs=len(costs))
        bar.start()

    def pytest_collection_finish(self, session) -> None:
        if session.items:
            self.begin({item.nodeid: cost_of(item) for item in session.items})

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self.bar is None:
            self.begin(dict.fromkeys(ids, 1.0))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self):
        """No letters beside the bar; pytest lists the failures at the end."""
        category, *_ = yield
        return category, "", ""

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.bar is not None:
            done = self.bar.tasks[0].fields["count"] + 1
            self.bar.update(self.task, advance=self.costs.get(nodeid, 0.0), count=done)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def cost_of(item) -> float:
    """The weight of a test in the bar."""
    cost = getattr(item, "cost", 0.0)
    return 0.0 if cost is None else cost + BUILD_COST
