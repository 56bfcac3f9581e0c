"""Atomics on shared memory: one instruction per warp, with the passes that SASS takes."""

import numpy as np
import pytest

from ptxsim.frontend.ast import Imm, Instr, Mem, Reg
from ptxsim.timing.atomics import Atomic, whole_warps
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import Execution, MemoryAccess, Run
from ptxsim.timing.locality import Locality
from ptxsim.timing.replay import Replay

H200 = chip("h200")
ADDRESS = Mem(Reg("%address"), 0, ())
ONE, OTHER = Imm(1, "int"), Reg("%x")


def atom(value, kind: str = "u32", op: str = "add") -> Instr:
    return Instr(None, "atom", ("shared", op, kind), (Reg("%old"), ADDRESS, value), 1, "")


def lanes(*words: int) -> list[MemoryAccess]:
    """The recorder's entries: the lanes of a warp one by one."""
    return [MemoryAccess(0, True, True, 4, 1, at=4 * word, width=4) for word in words]


@pytest.mark.parametrize(
    "value, kind, words, expected",
    [
        (ONE, "u32", range(32), Atomic(0, 1)),
        (ONE, "u32", [7] * 32, Atomic(0, 1)),  # ATOMS.POPC.INC counts the lanes of a word
        (ONE, "u32", range(0, 256, 8), Atomic(0, 8)),  # banks
        (OTHER, "u32", [7] * 32, Atomic(0, 32)),
        (OTHER, "u32", [0, 32, 0, 5], Atomic(0, 3)),
        (OTHER, "f32", range(32), Atomic(0, 1, 1)),
        (OTHER, "f32", [3, 3, 3, 4], Atomic(0, 1, 3)),  # as often as lanes collide
        (OTHER, "f32", [0, 32, 0, 32], Atomic(0, 2, 2)),
    ],
)
def test_a_warp_takes_as_many_passes_as_its_words_and_banks_say(value, kind, words, expected):
    assert whole_warps(lanes(*words), [atom(value, kind)]) == [expected]


def test_lanes_that_are_noted_together_count_alike():
    places = np.array([0, 3, 3, 35], np.int64) * 4
    together = MemoryAccess(0, True, True, 16, 2, at=80, lanes=places.tobytes(), width=4)
    alone = lanes(20, 23, 23, 55)
    for value, kind in ((ONE, "u32"), (OTHER, "u32"), (OTHER, "f32")):
        instrs = [atom(value, kind)]
        assert whole_warps([together], instrs) == whole_warps(alone, instrs)


def test_other_steps_stay_and_part_what_they_stand_between():
    store, run = MemoryAccess(1, True, True, 128, 1, at=0, width=4), Run(2, 2)
    instrs = [atom(ONE), Instr(None, "st", ("shared", "b32"), (ADDRESS, OTHER), 1, ""), None]
    steps = [store, *lanes(1, 2), run, *lanes(1), store, *lanes(*range(32)), *lanes(5)]
    one = Atomic(0, 1)
    assert whole_warps(steps, instrs) == [store, one, run, one, store, one, one]


def test_global_atomics_are_left_as_they_are():
    steps = [MemoryAccess(0, False, True, 4, 1, 1, lines=1)] * 3
    assert whole_warps(steps, [Instr(None, "atom", ("global", "add", "u32"), (), 1, "")]) == steps


def ends(*words: int, value=ONE, kind: str = "u32") -> float:
    execution = Execution([atom(value, kind), None], 1, 1, [[*lanes(*words), Run(1, 1)]], sass_counts=[1, 0])
    near = Locality(H200, 1, {1: 0.0}, {1: 1.0})
    return Replay(with_costs(execution, H200), H200, near, 1.755).play(1, 1).ends[0]


def test_a_warp_waits_for_each_turn_of_a_loop_and_for_nothing_else():
    assert ends(*[7] * 32) < 10
    once, twice, often = (ends(*words, value=OTHER, kind="f32") for words in ([1, 2], [1, 1], [1] * 8))
    assert once > 3 * H200.shared_latency and often - once == pytest.approx(7 * (twice - once))
