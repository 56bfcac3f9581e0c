"""The replay on hand-made executions: each rule with an answer that can be worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxsim.frontend.ast import Instr, Mem, Reg, Vec
from ptxsim.timing.chip import Chip, chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.critical import critical
from ptxsim.timing.execution import Execution, Multiplied, Run, Transfer, Unit
from ptxsim.timing.locality import Locality
from ptxsim.timing.replay import Replay
from ptxsim.timing.servers import MOST, Scheduler, Share
from ptxsim.trace.schedule import BARRIERS, LOADS, TENSOR, Event

H200 = chip("h200")
KB = 1024
ADD = Instr(None, "add", ("s32",), (Reg("%r1"), Reg("%r2"), Reg("%r3")), 1, "")


class Made:
    """Builds a execution event by event, as the recorder would."""

    def __init__(self, warps: int = 1):
        self.execution = Execution([ADD], 1, warps, [[] for _ in range(warps)])
        self.last = {}

    def event(self, lane: str, kind: str, name: str, after=(), **more) -> int:
        self.execution.events.append(Event(0, lane, kind, name, after=[*after], **more))
        return len(self.execution.events) - 1

    def by_warp(self, warp: int, kind: str, name: str, after=()) -> int:
        before = [self.last[warp]] if warp in self.last else []
        self.last[warp] = self.event(f"warp {warp}", kind, name, [*before, *after])
        self.execution.warps[warp].append(Unit(-1, self.last[warp]))
        return self.last[warp]

    def load(self, warp: int, size: int) -> int:
        number = self.event(LOADS, "load", "A", [self.by_warp(warp, "issue", "TMA load")], amount=size)
        self.execution.copies[number] = Transfer(False, size, 1, (0,))
        return number

    def product(self, warp: int, columns: int) -> int:
        """A warp's share of a wgmma with this many columns."""
        issue = self.by_warp(warp, "issue", "wgmma")
        return self.event(TENSOR, "mma", "wgmma", [issue], amount=256 * columns)

    def phase(self, *after: int) -> int:
        return self.event(BARRIERS, "phase", "full", after)

    def wait(self, warp: int, *after: int, name: str = "full") -> int:
        return self.by_warp(warp, "wait", name, after)


def near(part: Chip, miss: float = 0.0) -> Locality:
    return Locality(part, 1, {1: miss}, {1: 1.0})


def play(made: Made, instances: int = 1, resident: int = 1, part: Chip = H200, miss: float = 0.0):
    return Replay(with_costs(made.execution, part), part, near(part, miss), 1.755).play(instances, resident)


def test_a_load_takes_its_issue_its_port_and_the_latency():
    made = Made()
    made.wait(0, made.phase(made.load(0, 16 * KB)))
    (end,) = play(made).ends
    assert end == pytest.approx(2 + 16 * KB / H200.l2_port + H200.tma_latency)


def test_a_load_that_misses_takes_the_latency_of_hbm():
    made = Made()
    made.wait(0, made.phase(made.load(0, 16 * KB)))
    (end,) = play(made, miss=1.0).ends
    least = 2 + 16 * KB / H200.l2_port + H200.tma_hbm_latency
    assert least <= end <= least + H200.hbm_queue * MOST


def test_of_four_loads_that_share_their_lines_one_waits_for_hbm():
    def ends(lines: int) -> float:
        made = Made()
        for _ in range(8):
            number = made.load(0, 2 * KB)
            made.execution.copies[number].lines = lines
            made.wait(0, made.phase(number))
        (end,) = play(made, miss=1.0).ends
        return end

    late = H200.tma_hbm_latency - H200.tma_latency
    assert ends(16) - ends(64) == pytest.approx(6 * late, rel=0.01)  # 32 bytes of each of 64 lines: two miss


def test_one_load_and_one_product_follow_each_other():
    made = Made()
    made.wait(0, made.phase(made.load(0, 16 * KB)))
    made.wait(0, made.product(0, 256), name="wgmma.wait_group")
    (end,) = play(made).ends
    loaded = 2 + 16 * KB / H200.l2_port + H200.tma_latency
    assert end == pytest.approx(loaded + 2 + 128 + H200.mma_latency)


def test_loads_that_are_issued_together_share_the_port_and_hide_their_latency():
    made = Made()
    loads = [made.load(0, 16 * KB) for _ in range(8)]
    for load in loads:
        made.wait(0, made.phase(load))
    (end,) = play(made).ends
    assert end == pytest.approx(2 + 8 * 16 * KB / H200.l2_port + H200.tma_latency, rel=0.01)


# microbench-blackwell, umma_latency: cycles of n products 16 deep and a wait for them, M x N, on a B200
@pytest.mark.parametrize(("rows", "columns", "pair", "stored", "start", "each"), [
    (128, 128, False, False, 148.1, 64.0), (128, 256, False, False, 148.4, 128.0),
    (64, 128, False, False, 132.0, 64.0), (128, 64, False, True, 116.1, 32.0),
    (128, 128, False, True, 116.3, 64.0), (128, 256, True, False, 182.0, 128.0),
    (64, 128, True, False, 177.3, 32.0), (128, 128, True, True, 150.3, 64.0),
])  # fmt: skip
def test_products_and_a_wait_take_what_a_b200_was_measured_at(rows, columns, pair, stored, start, each):
    def takes(count: int) -> float:
        made, b200 = Made(), chip("b200")
        products = []
        for _ in range(count):
            issue = made.by_warp(0, "issue", "tcgen05.mma")
            products.append(made.event(TENSOR, "mma", "MMA", [issue]))
            own = columns // 2 if pair else columns
            made.execution.products[products[-1]] = Multiplied(rows, columns, own, pair, stored)
        commit = made.event(
            TENSOR, "commit", "commit", [made.by_warp(0, "issue", "tcgen05.commit"), *products]
        )
        made.wait(0, made.phase(commit))
        return play(made, part=b200).ends[0]

    assert takes(1) == pytest.approx(start + each, abs=17)
    assert takes(65) - takes(1) == pytest.approx(64 * each, rel=0.01)


def test_the_tensor_pipe_saturates_at_half_a_cycle_a_column():
    made = Made(4)
    for warp in range(4):
        last = [made.product(warp, 256) for _ in range(64)][-1]
        made.wait(warp, last, name="wgmma.wait_group")
    played = play(made)
    assert played.ends[0] == pytest.approx(64 * 128, rel=0.02)
    assert played.busy["tensor core"] == pytest.approx(64 * 128)


def ring(stages: int, steps: int) -> Made:
    """A producer warp fills a ring of 16 KB stages, a consumer multiplies 256 columns of each."""
    made, freed = Made(2), []
    for step in range(steps):
        if step >= stages:
            made.wait(0, made.phase(freed[step - stages]), name="empty")
        full = made.phase(made.load(0, 16 * KB))
        made.wait(1, full)
        product = made.product(1, 256)
        made.wait(1, product, name="wgmma.wait_group")
        freed.append(made.by_warp(1, "issue", "arrive on empty"))
    return made


def test_a_ring_of_two_stages_takes_half_the_round_of_one_stage():
    """With one stage: load, product and two barriers in turn; with two: two such rounds overlap."""

    def pace(stages):
        (short,), (long,) = play(ring(stages, 16)).ends, play(ring(stages, 48)).ends
        return (long - short) / 32

    latency = 16 * KB / H200.l2_port + H200.tma_latency
    product = 128 + H200.mma_latency
    assert pace(1) == pytest.approx(latency + product + H200.arrive_hop + H200.arrive_cost, rel=0.03)
    assert pace(2) == pytest.approx(pace(1) / 2, rel=0.03)
    assert pace(8) == pytest.approx(product + H200.wait_cost + H200.arrive_cost, rel=0.03)


def test_the_critical_path_of_a_slow_ring_is_latency():
    made = ring(1, 32)
    played = play(made)
    spent = critical(made.execution, played.paths[0], 0.0, H200.tma_latency + 512)
    assert spent.most_common(1)[0][0] == "load latency"
    assert sum(spent.values()) == pytest.approx(played.ends[0], rel=0.02)


@pytest.mark.parametrize(("kind", "loaded", "waits"), [("read", "%r2", True), ("read", "%r4", False),
                                                      ("write", "%r2", False)])  # fmt: skip
def test_who_reads_what_was_loaded_from_tensor_memory_waits_without_an_instruction_for_it(
    kind, loaded, waits
):
    made, b200 = Made(), chip("b200")
    registers, place = Vec((Reg(loaded),)), Mem(Reg("%r9"))
    operands = (registers, place) if kind == "read" else (place, registers)
    made.execution.instrs.append(Instr(None, "tcgen05", ("ld" if kind == "read" else "st",), operands, 2, ""))
    made.execution.warps[0] += [Unit(1, made.event("warp 0", f"TMEM {kind}", "", amount=4 * KB)), Run(0, 0)]
    (end,) = play(made, part=b200).ends
    port, late = b200.tmem_costs(kind == "write")
    assert end == pytest.approx((4 * KB / port + late if waits else 4) + 1)


def test_waves_follow_each_other_with_the_start_of_a_cta_between_them():
    made = Made()
    made.wait(0, made.phase(made.load(0, 16 * KB)))
    one = play(made).ends[0]
    assert play(made, 3).ends[-1] == pytest.approx(3 * one + 2 * H200.cta_start)
    assert play(made, 4, 2).ends[-1] < play(made, 4).ends[-1]


def test_an_arrival_reaches_a_waiting_warp_after_the_hop():
    made = Made(2)
    made.wait(1, made.phase(made.by_warp(0, "issue", "arrive on empty")))
    assert play(made).ends[0] == pytest.approx(H200.arrive_cost + H200.arrive_hop)


def test_runs_of_warps_of_one_subpartition_share_its_issue_slots():
    made = Made(8)
    for steps in made.execution.warps:
        steps.extend(Run(0, 0) for _ in range(100))
    assert play(made).ends[0] == pytest.approx(2 * 100, rel=0.05)  # two warps


def test_a_wait_for_what_never_comes_is_an_error():
    made = Made()
    made.wait(0, made.phase(made.event("warp 9", "issue", "arrive on full")))
    with pytest.raises(RuntimeError, match="the replay is stuck"):
        play(made)


# ---- for all rings ----

RINGS = st.tuples(st.integers(1, 6), st.integers(1, 24), st.integers(1, 4), st.integers(1, 3))
FASTER = {
    "tma_latency": 0.5,
    "tma_hbm_latency": 0.5,
    "mma_macs": 2.0,
    "l2_port": 2.0,
    "l2_rate": 2.0,
    "hbm_rate": 2.0,
    "arrive_hop": 0.5,
    "mma_latency": 0.5,
    "wait_cost": 0.5,
}


@settings(max_examples=40)
@given(RINGS, st.floats(0, 1))
def test_nothing_is_busy_longer_than_the_replay_and_it_plays_the_same_twice(shape, miss):
    stages, steps, instances, resident = shape
    made = ring(stages, steps)
    first, second = (play(made, instances, resident, miss=miss) for _ in range(2))
    assert first.ends == second.ends
    for name, busy in first.busy.items():
        assert busy <= max(first.ends) + 1e-6, name


@settings(max_examples=40)
@given(RINGS, st.sampled_from(sorted(FASTER)), st.floats(0, 1))
def test_a_faster_chip_is_never_slower(shape, what, miss):
    stages, steps, _, _ = shape
    made = ring(stages, steps)
    faster = replace(H200, **{what: getattr(H200, what) * FASTER[what]})
    assert max(play(made, part=faster, miss=miss).ends) <= max(play(made, miss=miss).ends) + 1e-6


def test_a_read_waits_the_longer_the_busier_hbm_is_and_longer_still_beside_writes():
    """70 cycles at half of the rate; with concurrent writes 1200 times their share of it."""

    def waits(load: float, write: bool) -> float:
        server = Share(1.0, 600, H200.hbm_queue, H200.hbm_drain)
        for at in range(0, 20_000, 100):
            server.serve(at, 100 * load, write)
        return server.waits()

    assert waits(0.1, False) == pytest.approx(8, abs=3)
    assert waits(0.5, False) == pytest.approx(H200.hbm_queue, rel=0.1)
    assert waits(0.34, True) == pytest.approx(0.34 * H200.hbm_drain + 36, rel=0.1)
    assert waits(2.0, False) == H200.hbm_queue * MOST


@pytest.mark.parametrize("threads, cycles", [(128, 21), (256, 29), (384, 37)])
def test_a_barrier_takes_longer_the_more_warps_arrive(threads, cycles):
    made = Made(threads // 32)
    arrived = [made.by_warp(warp, "issue", "cta_sync: arrive") for warp in range(threads // 32)]
    phase = made.phase(*arrived)
    for warp in range(threads // 32):
        made.wait(warp, phase, name="cta_sync")
    assert play(made).ends[0] == pytest.approx(cycles, abs=6)


def test_schedulers_go_round_so_a_short_run_does_not_wait_for_the_end_of_a_long_one():
    scheduler = Scheduler()
    assert [scheduler.take_turns(0, slots) for slots in (500, 10, 20)] == [0, 10, 40]
    assert scheduler.take_turns(500, 500) == 530  # the other run fits into the long one's time
    equal = Scheduler()
    assert [equal.take_turns(0, 5) for _ in range(4)] == [0, 5, 10, 15]


def test_who_has_ended_takes_no_more_turns():
    scheduler = Scheduler()
    scheduler.take_turns(0, 500)
    assert scheduler.take_turns(0, 10) == 10
    assert scheduler.take_turns(100, 10) == 110  # next to the long one only
