"""Timelines: the rules of the schedule on hand-made events, and the overlap that the steps allow."""

import importlib
import json
from dataclasses import asdict

import numpy as np
import pytest
from ptx_samples import compile_ptx

import ptxsim
import utils
from ptxsim.grid import late_checks
from ptxsim.grid import processes as parallel
from ptxsim.grid.late_checks import bus_for
from ptxsim.trace.bands import rows
from ptxsim.trace.schedule import COPIES, LOADS, STORES, TENSOR, UNITS, WAITS, Costs, Event, schedule, spans
from tirxlab.builders import builder
from tirxlab.cli.common import REFERENCE
from tirxlab.devices import sim
from tirxlab.steps import load_kernels, sections
from tirxlab.toolchain.build import build

SIZE = (128, 128, 512)
TILES = (2048, 2048, 256)  # two tiles for the first CTA of steps 6 to 8


@pytest.fixture(scope="module")
def trace():
    """trace(step, size, **options) -> Run of the first cluster; each run once."""
    known, built = {}, {}

    def call(step, size=SIZE, source=None, **options):
        key = step, size, source, tuple(sorted(options.items(), key=str))
        if key not in known:
            path = source or REFERENCE
            artifact = built.setdefault((step, size, path), None) or build(builder(path, step)(*size))
            built[step, size, path] = artifact
            arrays = utils.prepare_data(*size, seed=0, device="sim")
            known[key] = sim.run(artifact, arrays, **{"trace": True, "clusters": 1} | options)
        return known[key]

    return call


def ends(timeline):
    """What each event waited for, with the time at which that was ready."""
    costs = timeline.costs
    for event in timeline.events:
        for number in event.after:
            yield event, timeline.events[number].end
        for number in event.read:
            store = timeline.events[number]
            yield event, store.begin + costs.of(store.kind, store.amount)[0]


# ---- the schedule ----


def test_a_lane_serves_one_request_after_another_the_earliest_first():
    events = [
        Event(0, "warp 0", "issue", "late"),
        Event(0, "warp 0", "issue", "later", after=[0]),
        Event(0, LOADS, "load", "of warp 0", 640, after=[1]),
        Event(0, "warp 1", "issue", "early"),
        Event(0, LOADS, "load", "of warp 1", 640, after=[3]),
    ]
    ticks = schedule(events, Costs(issue=1, load=64, latency=100))
    assert [(e.begin, e.end) for e in events] == [(0, 1), (1, 2), (11, 121), (0, 1), (1, 111)]
    assert ticks == 121


def test_a_wait_lasts_from_the_event_before_it_to_what_it_waits_for():
    events = [
        Event(0, "warp 0", "issue", "copy"),
        Event(0, LOADS, "load", "copy", 6400, after=[0]),
        Event(0, "warp 0", "wait", "bar[0]", after=[0, 1]),
        Event(0, "warp 0", "stuck", "bar[1]", after=[2]),
    ]
    ticks = schedule(events, Costs(latency=10))
    assert (events[2].begin, events[2].end) == (1, 111)
    assert (events[3].begin, events[3].end) == (111, ticks) and ticks > 111


def test_a_wait_for_the_source_ends_before_the_store_does():
    events = [
        Event(0, STORES, "store", "D", 640),
        Event(0, "warp 0", "wait", "read", read=[0]),
        Event(0, "warp 1", "wait", "written", after=[0]),
    ]
    schedule(events, Costs(store=64, latency=100))
    assert (events[1].end, events[2].end) == (10, 110)


def test_spans_and_rows_cover_every_event_without_overlap():
    events = [
        Event(0, LOADS, "load", "", begin=b, end=e) for b, e in ((0, 5), (3, 9), (9, 12), (20, 21), (4, 6))
    ]
    assert spans(events) == [(0, 12), (20, 21)]
    made = rows(events)
    assert sorted(len(row) for row in made) == [1, 1, 3] and sum(map(len, made)) == 5
    assert all(a.end <= b.begin for row in made for a, b in zip(row, row[1:], strict=False))


@pytest.mark.parametrize("wrong", [{"mma": 0}, {"latency": -1}, {"load": 1.5}, {"issue": True}])
def test_costs_are_whole_numbers(wrong):
    with pytest.raises(ValueError, match="whole number"):
        Costs(**wrong)


# ---- the steps ----


@pytest.mark.parametrize("step", range(1, 11))
def test_no_event_begins_before_what_it_waited_for_has_ended(trace, step):
    size = {1: (128, 128, 64), 9: (256, 256, 512), 10: (512, 256, 512)}.get(step, SIZE)
    run = trace(step, size)
    timeline = run.trace
    assert run.verdict in ("clean", "not checked", "review") and timeline.finished and not timeline.notes
    assert all(event.end >= event.begin >= 0 for event in timeline.events)
    assert timeline.ticks == max(event.end for event in timeline.events)
    assert all((e.end if e.kind in WAITS else e.begin) >= moment for e, moment in ends(timeline))
    for lane in timeline.lanes:
        assert 0 <= lane.busy <= 1 and 0 <= lane.waiting <= 1
        events = timeline.of(lane.cta, lane.lane)
        if lane.lane not in UNITS:  # a warp does one thing at a time, in its own order
            assert all(a.end <= b.begin for a, b in zip(events, events[1:], strict=False))


@pytest.mark.parametrize("step", range(2, 9))
def test_the_work_is_that_of_the_tile(trace, step):
    timeline = trace(step).trace
    M, N, K = SIZE
    assert sum(e.amount for e in timeline.of(0, TENSOR)) == M * N * K
    if step > 3:
        assert sum(e.amount for e in timeline.of(0, LOADS)) == 2 * (M + N) * K
        assert sum(e.amount for e in timeline.of(0, STORES)) == 2 * M * N


def test_loads_and_mmas_overlap_from_step_5_on(trace):
    shares = {}
    for step in (4, 5, 7, 8):
        timeline = trace(step).trace
        mma = sum(end - begin for begin, end in spans(timeline.of(0, TENSOR)))
        shares[step] = timeline.overlap(0, "load", "mma") / mma
    assert shares[4] == 0
    assert min(shares[5], shares[7], shares[8]) > 0.8


def test_prefetch_and_a_deeper_ring_make_the_critical_path_shorter(trace):
    ticks = {step: trace(step).trace.ticks for step in (4, 5, 7, 8)}
    assert ticks[8] < ticks[7] <= 1.01 * ticks[5] < ticks[4]


def test_warp_specialisation_lets_stores_and_the_next_tile_overlap(trace):
    assert trace(6, TILES).trace.overlap(0, "store", "mma") == 0
    assert trace(7, TILES).trace.overlap(0, "store", "mma") > 0


@pytest.mark.parametrize("step", [2, 4, 7])
def test_all_warps_read_tensor_memory_behind_the_last_mma(trace, step):
    timeline = trace(step).trace
    done = max(e.end for e in timeline.of(0, TENSOR))
    reads = [e for e in timeline.events if e.kind == "TMEM read"]
    assert {e.lane for e in reads} == {f"warp {w}" for w in range(4)}
    assert min(e.begin for e in reads) >= done


def test_roles_and_waits_have_their_names(trace):
    lanes = {lane.title: lane for lane in trace(7).trace.lanes}
    assert {"WG1 warp 3 (TMA)", "WG1 warp 0 (MMA)", "WG0 warp 2 (write-back)", "WG1 warp 1", *UNITS} - set(
        lanes
    ) == {"cp.async"}
    assert next(iter(lanes["WG1 warp 0 (MMA)"].waits)) == "tma2mma"
    assert next(iter(lanes["WG0 warp 2 (write-back)"].waits)) == "mma2ld"
    waits = [e for e in trace(7).trace.events if e.kind == "wait" and e.name == "tma2mma[1]"]
    assert [e.phase for e in waits] == [0, 1, 2, 3] and all(e.line for e in waits)


def test_a_pair_of_ctas_multiplies_together(trace):
    timeline = trace(9, (256, 256, 512)).trace
    first, second = timeline.of(0, TENSOR), timeline.of(1, TENSOR)
    pairs = [(e.begin, e.end) for e in first if e.kind == "mma"]
    assert pairs == [(e.begin, e.end) for e in second if e.kind == "mma"] and len(pairs) == 32
    assert sum(e.amount for e in first) == sum(e.amount for e in second) == 256 * 256 * 512 // 2
    issuers = {lane.cta for lane in timeline.lanes if "MMA" in lane.roles}
    assert issuers == {0}


def test_costs_change_the_ticks_and_not_the_events(trace):
    usual, quick = trace(4).trace, trace(4, trace=Costs(latency=0)).trace
    assert quick.ticks < usual.ticks and quick.costs.latency == 0
    assert [(e.lane, e.name, e.after) for e in quick.events] == [
        (e.lane, e.name, e.after) for e in usual.events
    ]


@pytest.mark.parametrize("options", [{"checks": False}, {"order": "adverse"}, {"order": 3}])
def test_checks_and_order_do_not_change_the_work(trace, options):
    usual, other = trace(7).trace, trace(7, **options).trace
    for lane in (LOADS, TENSOR, STORES):
        amounts = [sorted(e.amount for e in t.of(0, lane)) for t in (usual, other)]
        assert amounts[0] == amounts[1]
    assert all((e.end if e.kind in WAITS else e.begin) >= moment for e, moment in ends(other))
    if options == {"checks": False}:
        assert other.ticks == usual.ticks


def test_a_missing_wait_shows_as_an_mma_that_begins_before_its_loads_have_ended(trace, tmp_path):
    wait = "Tx.ptx.mbarrier.try_wait(tma_bar.ptr_to([0]), phase)  # A and B are in shared memory"
    source = edited(tmp_path, 4, wait, "pass")
    timeline = trace(4, source=source).trace
    assert timeline.overlap(0, "load", "mma") > 0


def test_a_deadlock_gives_a_timeline_up_to_the_standstill(trace, tmp_path):
    source = edited(tmp_path, 7, "ld2mma.init(128)", "ld2mma.init(129)")
    run = trace(7, TILES, source=source)
    timeline = run.trace
    assert run.verdict == "error" and not timeline.finished
    stuck = {e.lane: e for e in timeline.events if e.kind == "stuck"}
    assert stuck["warp 4"].name == "ld2mma[0]" and stuck["warp 4"].phase == 0
    assert all(e.end == timeline.ticks > e.begin for e in stuck.values())
    assert sum(e.amount for e in timeline.of(0, TENSOR)) == 128 * 128 * TILES[2]  # the first tile alone
    json.dumps(asdict(timeline))


def edited(folder, step, old, new):
    """A kernels file with one mistake in a step of the solutions."""
    parts = sections(REFERENCE.read_text())
    assert old in parts[step]
    parts[step] = parts[step].replace(old, new, 1)
    file = folder / "gemm_kernels.py"
    file.write_text("".join(parts.values()))
    return file


# ---- launches ----


def test_nobody_watches_without_trace(monkeypatch):
    seen = []
    monkeypatch.setattr(late_checks, "bus_for", lambda *args: seen.append(args) or bus_for(*args))
    for checks, trace in ((False, False), (True, False), (False, True)):
        result = launch(checks=checks, trace=trace)
        assert (result.trace is not None) == trace
    assert [(args[2], len(args[3])) for args in seen] == [(False, 0), (True, 0), (False, 1)]


def test_threads_copies_and_barriers_are_in_it():
    timeline = launch(trace=True).trace
    kinds = [e.kind for e in timeline.of(0, "warp 1")]
    assert kinds == ["shared write", "issue", "wait", "shared read", "global write"]
    assert [e.name for e in timeline.of(0, "warp 1")][2] == "cta_sync"
    assert timeline.of(0, "warp 1")[4].amount == 128


def test_the_first_cluster_is_traced_where_others_run_in_processes(monkeypatch):
    monkeypatch.setattr(parallel, "WORTHWHILE", 0.0)
    forked = []
    real = parallel._fork
    monkeypatch.setattr(parallel, "_fork", lambda *args: forked.append(args) or real(*args))
    alone, many = launch(trace=True, grid=1), launch(trace=True, grid=8, jobs=2)
    assert forked and many.stats["ctas"] == 8
    inline = launch(trace=True, grid=8, jobs=1)
    for other in (many, inline):
        assert [asdict(e) for e in other.trace.events] == [asdict(e) for e in alone.trace.events]


def test_part_of_a_grid_is_never_clean():
    assert launch(grid=8).verdict == "clean"
    part = launch(grid=8, clusters=2)
    assert part.verdict == "not checked" and (part.stats["ctas"], part.stats["grid_ctas"]) == (2, 8)


GRID_BARRIER = r"""
extern "C" __global__ void k(int* count) {
  if (threadIdx.x == 0) {
    atomicAdd(count, 1);
    while (*(volatile int*)count < gridDim.x) {}
  }
}"""


def test_clusters_that_wait_for_each_other_all_run():
    count = np.zeros(1, np.int32)
    module = ptxsim.load(compile_ptx(GRID_BARRIER, "sm_100a"))
    result = module.launch("k", grid=4, block=32, args=[count], trace=True, clusters=1)
    assert count[0] == result.stats["ctas"] == 4
    assert result.trace.finished and "polls global memory" in result.trace.notes[0]


@pytest.mark.parametrize("name, lane", [("hopper", TENSOR), ("ampere", COPIES)])
def test_the_other_tracks_have_their_units(name, lane):
    track = importlib.import_module(f"tracks.{name}.reference").TRACK
    kernels = load_kernels(REFERENCE.with_name(f"{name}_kernels.py"))
    artifact = getattr(kernels, track.builder)(64, 64, 64).artifact
    arrays = [np.zeros(b.shape, np.dtype(b.dtype)) for b in artifact.buffers]
    timeline = sim.run(artifact, arrays, trace=True, clusters=1).trace
    work = sum(e.amount for e in timeline.of(0, lane))
    assert work == {"hopper": 64 * 64 * 64, "ampere": 2 * 2 * 64 * 64}[name]
    assert all((e.end if e.kind in WAITS else e.begin) >= moment for e, moment in ends(timeline))
    assert [note[:20] for note in timeline.notes] == (["products by mma.sync"] if name == "ampere" else [])


PTX = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry swap(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    .shared .align 16 .b8 buf[256];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, buf;
    shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4;
    st.shared.u32 [%r5], %r1;
    bar.sync 0;
    xor.b32 %r6, %r4, 128; add.u32 %r6, %r3, %r6;
    ld.shared.u32 %r7, [%r6];
    ld.param.u64 %rd1, [out]; mad.lo.u32 %r2, %r2, 256, %r4;
    cvt.u64.u32 %rd2, %r2; add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r7;
    ret;
}
"""


def launch(grid=1, **options):
    """Two warps swap their lanes' numbers through shared memory."""
    out = np.zeros((grid, 64), np.uint32)
    result = ptxsim.load(PTX).launch("swap", grid=grid, block=64, args=[out], **options)
    if "clusters" not in options:
        assert (out == np.roll(np.arange(64), 32)).all()
    return result
