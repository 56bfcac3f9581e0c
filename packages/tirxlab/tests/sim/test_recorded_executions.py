"""Recording: the execution of a real kernel, and that a dry run takes the same path as a normal one."""

from dataclasses import replace

import pytest

import ptxsim
from ptxsim.timing import record as recording
from ptxsim.timing.chip import chip
from ptxsim.timing.execution import MemoryAccess, Run, Unit
from ptxsim.timing.predict import predict, sample
from ptxsim.timing.record import Unpredictable, record
from ptxsim.timing.sharing import sharers, tiles_of
from ptxsim.trace.schedule import LOADS, STORES, TENSOR
from tirxlab.builders import builder
from tirxlab.cli.common import REFERENCE
from tirxlab.forecast import NoForecast, forecast, launch_of
from tirxlab.toolchain.build import build

SIZE = (512, 512, 256)
STEP10 = (1024, 512, 256)


@pytest.fixture(scope="module")
def made():
    """made(step, size) -> Artifact, built once."""
    known = {}

    def call(step, size=SIZE):
        if (step, size) not in known:
            known[step, size] = build(builder(REFERENCE, step)(*size))
        return known[step, size]

    return call


def totals(execution, lane):
    return sum(c.bytes for n, c in execution.copies.items() if execution.events[n].lane == lane)


@pytest.mark.parametrize(
    "step, size, rows, columns",
    [(4, SIZE, 128, 128), (8, SIZE, 128, 128), (9, SIZE, 256, 256), (10, STEP10, 512, 256)],
)
def test_a_tape_holds_all_copies_and_products_of_its_tile(made, step, size, rows, columns):
    execution = record(launch_of(made(step, size)))
    assert sum(e.amount for e in execution.events if e.lane == TENSOR) == rows * columns * size[2]
    assert totals(execution, STORES) == rows * columns * 2
    assert totals(execution, LOADS) == sum(execution.reads.values())
    assert all(isinstance(s, Run | MemoryAccess | Unit) for w in execution.warps for s in w)


@pytest.mark.parametrize("step", [1, 4, 7])
def test_a_dry_run_is_recorded_as_a_wet_one(made, step, monkeypatch):
    size = (128, 128, 64) if step == 1 else SIZE
    dry = record(launch_of(made(step, size)))
    monkeypatch.setattr(recording, "DRY", False)
    wet = record(launch_of(made(step, size)))
    assert dry.warps == wet.warps and dry.events == wet.events and dry.reads == wet.reads


def test_a_sample_is_the_same_twice_and_so_is_its_prediction(made):
    first, second = (predict(sample(launch_of(made(7)), sms=148), chip("b200")) for _ in range(2))
    assert first.seconds == second.seconds and first.spent == second.spent


def test_clusters_of_one_row_of_tiles_share_a_and_those_of_one_column_share_b(made):
    launch = launch_of(made(4))
    execution = record(launch)
    assert sharers(launch, execution.reads, 16) == dict.fromkeys(execution.reads, 4.0)  # 4 by 4 tiles


def test_a_persistent_cluster_counts_its_tiles(made):
    artifact = made(7, (2048, 2560, 256))  # 320 tiles for 148 CTAs
    assert tiles_of(record(launch_of(artifact))) == 3
    assert tiles_of(record(launch_of(made(4)))) == 1


def test_a_larger_problem_takes_longer_and_a_faster_chip_less(made):
    part = chip("b200")
    small, large = (predict(sample(launch_of(made(4, (2048, 2048, k))), sms=148), part) for k in (256, 512))
    assert small.cycles < large.cycles
    quicker = replace(part, tma_latency=part.tma_latency / 2, mma_latency=part.mma_latency / 2)
    assert predict(sample(launch_of(made(4, (2048, 2048, 512))), sms=148), quicker).cycles < large.cycles


def test_shares_of_the_critical_path_add_up_and_the_tensor_core_is_not_busy_all_the_time(made):
    found = forecast(made(5), "b200", 1e9)
    assert sum(found.spent.values()) == pytest.approx(1) and 0 < found.tensor_busy < 1
    assert found.bound in {*found.spent, "launch"}


STUCK = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry stuck()
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .shared .align 8 .b64 bar;
    mov.u32 %r1, bar;
    mbarrier.init.shared.b64 [%r1], 2;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;
    @!%p1 bra AGAIN;
    ret;
}
"""


def test_a_kernel_that_never_ends_is_not_recorded():
    launch = ptxsim.load(STUCK).prepare("stuck", 1, 32, 1, 0, [])
    with pytest.raises(Unpredictable, match="does not run to its end"):
        record(launch)
    with pytest.raises(Unpredictable, match="does not run to its end"):  # clusters of a grid are counted
        sample(ptxsim.load(STUCK).prepare("stuck", 4, 32, 1, 0, []), sms=132)


def test_ptx_that_is_not_modelled_is_not_predicted(made):
    artifact = made(4)
    with pytest.raises(NoForecast, match="line"):
        forecast(replace(artifact, ptx=artifact.ptx.replace("tcgen05.commit", "tcgen05.commits")), "b200")
