"""What passes the load unit of an SM, and what ptxas does with loads: each law with its measured value."""

import numpy as np
import pytest

from ptxsim.frontend.ast import Instr, Reg
from ptxsim.timing.accesses import copied, shared_passes
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import Execution, MemoryAccess, Run, Transfer, Unit
from ptxsim.timing.locality import Locality
from ptxsim.timing.ordering import AHEAD, HELD, among_products, hoisted
from ptxsim.timing.replay import Replay
from ptxsim.timing.steps import Global, Issue, Product, Shared, Step, Stretch, Wait
from ptxsim.trace.schedule import COPIES, Event

H200 = chip("h200")
LANES = np.arange(32)
ADD = Instr(None, "add", ("s32",), (Reg("%r1"), Reg("%r2"), Reg("%r3")), 1, "")
USE = Instr(None, "add", ("s32",), (Reg("%r1"), Reg("%f1"), Reg("%r3")), 3, "")
LOAD = Instr(None, "ld", ("shared", "f32"), (Reg("%f1"), Reg("%r9")), 2, "")


def rows(row: int, shift: int = 0, swizzle: bool = False, pitch: int = 0, stride: int = 2944):
    """Sources and targets of a cp.async of 16 bytes a lane: `row` bytes of each row, `shift` past a line."""
    line, chunk = LANES * 16 // row, LANES % (row // 16)
    targets = line * (pitch or row) + (chunk ^ (line % 8) if swizzle else chunk) * 16
    return (1 << 20) + shift + line * stride + chunk * 16, targets


# ports.cu: cycles for one, all warps of an SM; ncu: sectors and wavefronts of kernels with such copies
@pytest.mark.parametrize(
    ("given", "pieces", "parted", "passes"),
    [
        ({"row": 128}, 16, 0, 4),  # 3.8 cycles
        ({"row": 128, "shift": 16}, 32, 32, 12),  # 12.3
        ({"row": 64}, 16, 0, 8),  # 9.8
        ({"row": 64, "shift": 16}, 32, 32, 16),  # 16.1
        ({"row": 32}, 16, 0, 16),  # 18.1
        ({"row": 32, "shift": 16}, 32, 32, 32),  # 32.1
        ({"row": 128, "swizzle": True}, 16, 0, 4),  # 16 and 4.0: Ampere 4
        ({"row": 32, "stride": 10000}, 24, 16, 24),  # 24.3 and 24.3: Ampere 2 at K = 5000
        ({"row": 64, "pitch": 80}, 24, 16, 12),  # 24 and 15: plain `staged`
    ],
)
def test_a_sector_whose_halves_part_comes_twice_and_its_line_takes_two_passes(given, pieces, parted, passes):
    assert copied(*rows(**given)) == (pieces, parted, passes)


def test_lanes_that_ask_for_the_same_sixteen_bytes_take_two_passes():
    wide = np.full(32, 16)
    assert shared_passes(LANES * 0, wide) == 2  # ncu, the products of plain `tiled`
    assert shared_passes(LANES * 16, wide) == 4
    assert shared_passes(LANES * 0, np.full(32, 4)) == 1


# ---- what ptxas does with loads ----


def run(slots: int, reads=(), writes=(), branches: bool = False):
    roots = {name: frozenset(reads) for name in writes}
    return Step(Stretch(slots, dict.fromkeys(writes, slots), branches, roots), tuple(reads), tuple(writes))


def load(address: str, *to: str):
    return Step(Global(4, 0, 1, False, 1), (address,), to)


def store(value: str):
    return Step(Shared(1, 0.0, True), ("at", value))


def kinds(steps) -> list[type]:
    return [type(step.does) for step in steps]


def test_a_load_takes_the_arithmetic_of_its_address_along():
    first, use = load("p", "a"), run(2, ("a", "p"), ("sum",))
    on = run(1, ("p",), ("p",))
    found = hoisted([first, use, on, load("p", "b")])
    assert kinds(found) == [Global, Global, Stretch, Stretch]
    assert found[1].reads == ("p",)


def test_but_not_more_of_it_than_registers_allow():
    steps = [load("p", "a"), run(AHEAD + 1, ("p",), ("p",)), load("p", "b")]
    assert hoisted(steps) == steps


def test_and_not_past_what_gives_it_the_address():
    steps = [load("p", "a"), run(1, ("a",), ("q",)), load("q", "b")]
    found = hoisted(steps)
    assert kinds(found) == [Global, Global, Stretch] and found[1].reads == ("a",)  # it waits for the first


@pytest.mark.parametrize("words", [1, 2, 4])
def test_loads_pass_stores_to_shared_memory_while_registers_hold_what_has_come(words):
    pairs = []
    for i in range(HELD):
        names = [f"v{i}.{w}" for w in range(words)]
        pairs += [load("p", *names), store(names[0])]
    found = kinds(hoisted(pairs))
    assert found.index(Shared) == HELD // words


def test_copies_stand_among_the_products_that_follow_them():
    events = [Event(0, "warp 0", "issue", "cp.async") for _ in range(3)]
    copies = [Step(Issue(i, 2)) for i in range(3)]
    product, wait = Step(Product(6.3, 24.3)), Step(Wait(0, 4))
    found = among_products([*copies, run(1), product, product, wait, product], events)
    assert kinds(found) == [Stretch, Product, Issue, Product, Issue, Issue, Wait, Product]


def words(*addresses: int, lanes=LANES * 0) -> Execution:
    """One warp that loads words of shared memory, one after another."""
    execution = Execution([ADD, LOAD], 1, 1, [[]])
    for at in addresses:
        step = MemoryAccess(1, True, False, 128, 1, at=at, lanes=lanes.astype(np.int64).tobytes(), width=4)
        execution.warps[0].append(step)
    return execution


@pytest.mark.parametrize(
    ("addresses", "passes"),
    [
        ((0, 4, 8, 12), [2]),
        ((0, 4), [1]),  # 8 bytes
        ((4, 8), [2]),  # only 16 bytes contain both
        ((12, 16), [1, 1]),
        ((0, 0), [1]),  # the same word again
        ((0, 4, 0, 4, 32, 0), [1, 1]),
        ((0, 4, 8, 12, 16, 20), [2, 1]),
    ],
)
def test_neighbouring_words_come_by_one_load(addresses, passes):
    found = with_costs(words(*addresses), H200)
    assert [step.does.passes for step in found.warps[0]] == passes
    assert found.slots == len(passes) and found.shared_bytes == 128 * sum(passes)


def test_words_that_are_not_aligned_in_all_lanes_come_one_by_one():
    assert len(with_costs(words(0, 4, lanes=LANES * 4), H200).warps[0]) == 2


def test_a_barrier_divides_them():
    execution = words(0, 4)
    execution.events.append(Event(0, "warp 0", "wait", "cta_sync"))
    execution.warps[0].insert(1, Unit(-1, 0))
    assert kinds(with_costs(execution, H200).warps[0]) == [Shared, Wait, Shared]


# ---- the queue before the load unit ----


def played(execution: Execution, instances: int = 1):
    near = Locality(H200, 1, {1: 0.0}, {1: 1.0})
    return Replay(with_costs(execution, H200), H200, near, 1.755).play(instances, instances)


def copies(count: int, passes: int) -> Execution:
    """One warp that issues `count` cp.async, and loads a word of shared memory."""
    execution = Execution([ADD, LOAD], 1, 1, [[]])
    for number in range(0, 2 * count, 2):
        execution.events.append(Event(0, "warp 0", "issue", "cp.async"))
        execution.events.append(Event(0, COPIES, "load", "cp.async", after=[number], amount=512))
        execution.copies[number + 1] = Transfer(False, 512, 1, (0,), 0, False, passes, passes)
        execution.warps[0].append(Unit(-1, number))
    execution.warps[0].append(MemoryAccess(1, True, False, 128, 1))
    return execution


@pytest.mark.parametrize("passes", [4, 16, 32])
def test_a_load_waits_behind_the_copies_before_it(passes):
    execution = copies(24, passes)
    execution.instrs = [ADD, LOAD, USE]
    execution.warps[0].append(Run(2, 2))
    (end,) = played(execution).ends
    assert end == pytest.approx(24 * passes * H200.copy_pass + H200.shared_latency, abs=8)


def test_a_warp_waits_when_the_queue_is_full():
    execution = copies(24, 16)
    execution.warps[0].pop()
    (end,) = played(execution).ends
    assert end == pytest.approx(24 * 16 * H200.copy_pass - H200.copy_queue, abs=10)


def test_ctas_of_one_warp_spread_over_the_sub_partitions():
    execution = Execution([ADD], 1, 1, [[Run(0, 0) for _ in range(100)]])
    four, eight = (max(played(execution, count).ends) for count in (4, 8))
    assert four == pytest.approx(100, rel=0.05) and eight == pytest.approx(200, rel=0.05)


def test_loads_of_global_memory_pass_the_port_of_shared_memory():
    """ncu: the data pipe of plain `fragments` is busy for 9.7 cycles with a load of 8 lines."""

    def ends(lines: int) -> float:
        execution = Execution([ADD, LOAD, USE], 1, 1, [[]])
        far = [MemoryAccess(0, False, False, 512, 16, segment=1, lines=lines) for _ in range(20)]
        execution.warps[0] += [*far, MemoryAccess(1, True, False, 128, 1), Run(2, 2)]
        return played(execution).ends[0]

    assert ends(16) - ends(8) == pytest.approx(20 * 8, abs=10)


def test_no_warp_passes_a_barrier_before_its_products_are_issued():
    mma = ("sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32")
    execution = Execution([Instr(None, "mma", mma, (Reg("%f1"), Reg("%f2")), 1, "")], 1, 1, [[]])
    execution.events.append(Event(0, "warp 0", "issue", "cta_sync: arrive"))
    products = [Unit(0) for _ in range(40)]
    execution.warps[0] += products
    assert played(execution).ends[0] < 50  # they are queued
    execution.warps[0].append(Unit(-1, 0))
    assert played(execution).ends[0] == pytest.approx(39 * H200.mma_sync_cycles, abs=10)


@pytest.mark.parametrize(("sharers", "share"), [(1, 0.8), (2, 0.4), (165, 0.0)])
def test_a_cluster_behind_the_others_finds_in_l2_what_they_have_read(sharers, share):
    near = Locality(H200, 132, {1: 0.8}, {1: float(sharers)}, behind=0.5)
    assert near.waits(1) == pytest.approx(share)


def test_an_atomic_that_orders_memory_for_the_gpu_holds_its_warp():
    def ends(*mods: str) -> float:
        atom = Instr(None, "atom", ("global", *mods, "add", "f32"), (Reg("%f1"), Reg("%f2")), 1, "")
        return played(Execution([atom], 1, 1, [[Unit(0)]])).ends[0]

    assert ends("gpu", "acq_rel") == pytest.approx(H200.release_latency)
    assert ends("gpu", "relaxed") < 100
