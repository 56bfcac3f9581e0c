"""What D depends on: experiments with sums that are read out halved."""

from types import SimpleNamespace

import numpy as np
import pytest

from instructor.autograder.behaviour import DEMANDS, ELSEWHERE, ONE_CONSUMER, OTHERS, SAME_ROWS
from instructor.autograder.case import Case
from instructor.autograder.purpose import EverySum, Halvings, IssuedBy, Outcome, ReadBy, experiments, useless

ONE, OTHER = (0, "warp 0"), (0, "warp 1")
MMAS = {
    who: SimpleNamespace(after=[n], cta=who[0], lane=who[1], kind="mma") for n, who in enumerate((ONE, OTHER))
}
EVENTS = list(MMAS.values())  # an MMA of each; it is its own issue, too
ALL = EverySum(), IssuedBy(ONE), IssuedBy(OTHER), ReadBy(0)
D = np.arange(1, 65, dtype=np.float16).reshape(8, 8)


def read_out(halvings: Halvings, sums: np.ndarray, lane: str = "warp 1") -> np.ndarray:
    """The outcome of experiments if the rows of D, int (8), are sums of these MMAs."""
    times = [halvings(EVENTS, [n], lane) for n in sums]
    return D * np.float16(0.5) ** np.array(times, np.float16)[:, None]


def test_one_run_tells_what_each_experiment_changes():
    halvings = Halvings(ALL)
    after = read_out(halvings, np.repeat([0, 1], 4))
    found = halvings.outcome(D, after, np.ones(D.shape, bool), 1.0)
    assert found.parts == (1.0, 0.5, 0.5, 1.0)
    assert found.rows[1].tolist() == [True] * 4 + [False] * 4
    assert found.rows[2].tolist() == [False] * 4 + [True] * 4


def test_what_does_not_become_less_came_from_elsewhere():
    halvings = Halvings(ALL)
    after = read_out(halvings, np.repeat([0, 1], 4))
    after[:, 0] = D[:, 0]
    assert halvings.outcome(D, after, np.ones(D.shape, bool), 1.0).parts == (0.875, 0.4375, 0.4375, 0.875)
    after[:, 0] = D[:, 0] / 3
    assert halvings.outcome(D, after, np.ones(D.shape, bool), 1.0).parts[0] == 0.875


def test_only_what_was_written_counts():
    halvings = Halvings(ALL[:1])
    written = np.arange(64).reshape(8, 8) < 16
    after = np.where(written, read_out(halvings, np.zeros(8, int)), np.float16(7))
    found = halvings.outcome(D, after, written, 1.0)
    assert found.parts == (1.0,) and found.rows[0].sum() == 2
    assert (halvings.undone(after, written) == np.where(written, D, 7)).all()


def test_no_sum_becomes_too_small():
    """Beyond so many sets a sum is not halved; D shows that, and the experiments are made one by one."""
    halvings = Halvings(tuple(ReadBy(group) for group in range(9)))
    assert [halvings(EVENTS, [0], f"warp {4 * group}") for group in range(9)] == [1, 2, 3, 4, 5, 6, 7, 0, 0]


def judged(outcomes: dict, step: int = 8, reuse: float = 64.0) -> tuple[str, list]:
    """What `useless` returns for these outcomes of the experiments, and which experiments it tried."""
    tried = []

    def outcome(chosen: tuple) -> Outcome:
        tried.append(chosen)
        return outcomes[chosen]

    lanes = {who: [n] for n, who in enumerate((ONE, OTHER))}
    seen = SimpleNamespace(
        alone=False, reuse=reuse, issued=lambda name: lanes, readers={ONE: 1, (0, "warp 4"): 1}
    )
    return useless(DEMANDS[step], seen, outcome), tried


ROWS = np.ones(8, bool)


def test_all_is_well_after_one_run():
    hint, tried = judged({(EverySum(),): Outcome((1.0,), (ROWS,), 1.0)})
    assert hint == "" and len(tried) == 1


@pytest.mark.parametrize(
    ("part", "weight", "hint"), [(0.9, 1.0, ELSEWHERE), (1.0, 1.2, OTHERS), (1.0, 1 - 1e-9, OTHERS)]
)
def test_what_is_lacking_is_told(part, weight, hint):
    assert judged({(EverySum(),): Outcome((part,), (ROWS,), weight)})[0] == hint


def step_10(parts: tuple[float, ...], rows=(ROWS, ROWS, ~ROWS, ROWS, ROWS)) -> dict:
    """All experiments at once, and one by one."""
    seen = SimpleNamespace(
        alone=False, issued=lambda name: {ONE: [0], OTHER: [1]}, readers={ONE: 1, (0, "warp 4"): 1}
    )
    chosen = tuple(one.chosen for one in experiments(DEMANDS[10], seen))
    each = zip(chosen, parts, rows, strict=True)
    return {(one,): Outcome((part,), (own,), 1.0) for one, part, own in each} | {
        chosen: Outcome((0.0,) * 5, rows, 1.0)
    }


def test_a_number_of_several_sums_is_looked_at_one_by_one():
    """Two sums, halved once and twice, make a number that no experiment explains."""
    hint, tried = judged(step_10((1.0, 0.5, 0.5, 0.5, 0.5)), 10)
    assert hint == "" and len(tried) == 6


def test_two_warps_that_multiply_the_same_rows():
    assert judged(step_10((1.0, 0.5, 0.5, 0.5, 0.5), (ROWS,) * 5), 10)[0] == SAME_ROWS
    assert judged(step_10((1.0, 0.5, 0.5, 0.5, 0.5), (ROWS,) * 5), 10, reuse=85.0)[0] == ""


def test_a_warp_whose_sums_go_nowhere():
    assert judged(step_10((1.0, 0.5, 0.0, 0.5, 0.5)), 10)[0] == ONE_CONSUMER


def test_clusters_that_write_nothing_alone_show_nothing(monkeypatch):
    """This is no fault of the grader, which would leave the step ungraded instead of saying what it lacks."""
    monkeypatch.setattr(Case, "experiment", lambda self, number, chosen: None)
    monkeypatch.setattr(Case, "clusters", 2)
    case = Case(SimpleNamespace(seed=1), None, D, D, D)
    seen = SimpleNamespace(alone=False, reuse=64.0)
    assert useless(DEMANDS[8], seen, case.tried) == ELSEWHERE
