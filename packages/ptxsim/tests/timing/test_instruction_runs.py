"""When a run of plain instructions needs a register, and when it provides one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxsim.frontend.ast import Instr, Reg
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import Execution, MemoryAccess, Run
from ptxsim.timing.instructions import Rows
from ptxsim.timing.locality import Locality
from ptxsim.timing.replay import Replay

H200 = chip("h200")
LATE = H200.alu_latency


def instr(op: str, kind: str, *names: str) -> Instr:
    return Instr(None, op, (kind,), tuple(Reg(f"%{name}") for name in names), 1, "")


def add(*names: str, kind: str = "f32") -> Instr:
    return instr("add", kind, *names)


def run(*instrs: Instr, sass_counts=()):
    return Rows([*instrs], [*sass_counts] or [1] * len(instrs), LATE).run(0, len(instrs) - 1)


def test_a_register_is_needed_when_its_first_reader_is_due():
    slots, needed, _ = run(add("a", "p", "p"), add("b", "q", "p"), add("c", "q", "a"))
    assert slots == 3 and needed == {"%p": 0, "%q": 1}


def test_a_chain_does_not_put_off_what_stands_beside_it():
    _, _, ready = run(add("a", "p", "p"), add("b", "a", "a"), add("c", "b", "b"), add("d", "p", "p"))
    assert ready == {"%a": LATE, "%b": 2 * LATE, "%c": 3 * LATE, "%d": 3 + LATE}


def test_what_ptxas_takes_away_takes_no_turn():
    _, needed, ready = run(add("a", "p", "p"), add("b", "a", "q"), add("c", "r", "r"), sass_counts=(5, 0, 1))
    assert needed == {"%p": 0, "%q": 5, "%r": 5} and ready["%c"] == 5 + LATE


def test_a_turn_comes_when_the_pipes_before_are_free():
    whole = [instr("min", "s32", f"a{i}", "p", "p") for i in range(4)]
    slots, needed, _ = run(*whole, add("b", "q", "q"))
    assert slots == 8 and needed["%q"] == 8  # of 16 lanes: two cycles each


names = st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=12))
def test_nothing_is_there_before_what_it_comes_from(rows):
    """For every prefix: a register is ready one latency after the last register it reads, and after its own
    slot.
    """
    slots, needed, ready = run(*(add(*row) for row in rows))
    assert slots == len(rows) and all(0 <= due < slots for due in needed.values())
    _, _, before = run(*(add(*row) for row in rows[:-1])) if rows[1:] else (0, {}, {})
    result, *reads = (f"%{name}" for name in rows[-1])
    due = [len(rows) - 1, *(before.get(r, needed.get(r, 0)) for r in reads)]
    assert ready == before | {result: pytest.approx(max(due) + LATE)}


def ends(*instrs: Instr, turns: int = 1) -> float:
    """When a warp ends that loads %x from shared memory and then replays the run `turns` times."""
    load = instr("ld", "shared", "x", "address")
    steps = [MemoryAccess(0, True, False, 128, 1), *[Run(1, len(instrs))] * turns]
    execution = Execution([load, *instrs], 1, 1, [steps])
    near = Locality(H200, 1, {1: 0.0}, {1: 1.0})
    return Replay(with_costs(execution, H200), H200, near, 1.755).play(1, 1).ends[0]


def test_a_run_goes_on_until_it_reads_what_is_not_there():
    others = [add(f"a{i}", "p", "p") for i in range(10)]
    early, late = ends(add("b", "x", "x"), *others), ends(*others, add("b", "x", "x"))
    assert early - late == pytest.approx(10)
    assert ends(*(others * 10), add("b", "x", "x")) == 1 + 101  # all that latency is hidden


def test_sums_that_are_read_at_the_end_of_a_run_let_the_next_one_begin():
    """As in plain `bodies`: a body reads the sums of the previous body last."""
    body = [add("a", "x", "x"), *(add("a", "a", "a") for _ in range(8)), add("sum", "sum", "a")]
    ninth, eighth = ends(*body, turns=9), ends(*body, turns=8)
    chain = 10 * LATE
    assert ninth - eighth == pytest.approx(chain - 9)


def in_order(instrs: list[Instr], stalls: list[float]) -> tuple[float, float, dict, dict]:
    rows = Rows(instrs, [1.0] * len(instrs), LATE, stalls)
    return rows.in_order((n, rows.row(n).reads, rows.row(n).writes) for n in range(len(instrs)))


@pytest.mark.parametrize(("stalls", "waits"), [([1, 1, 1], 0), ([4, 1, 1], 3), ([4, 13, 1], 15)])
def test_a_warp_waits_as_long_as_the_machine_code_says(stalls, waits):
    chain = [add("a", "p", "p"), add("b", "a", "a"), add("c", "q", "q")]
    assert in_order(chain, stalls)[:2] == (3, waits)


def test_a_stall_says_nothing_of_the_slow_pipe():
    """A reader of ex2's result waits for a scoreboard, however short the stall after ex2 is."""
    slots, waits, _, ready = in_order([instr("ex2", "f32", "a", "p"), add("b", "a", "a")], [1, 1])
    assert ready["%a"] == 5 * LATE and slots + waits == 5 * LATE + 1
