"""Each PTX mutant changes one statement, and a recorded launch runs again
without the library that made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import ptxsim
from research.mutation.on_ptx import Subject, _key, summary
from research.mutation.ptx_operators import LATE, OPERATORS, mutants
from research.tirx_kernels.recorded import Recorded, save

CHANGES = [  # operator, statement, its replacement
    ("no CTA barrier", "bar.sync 0;", ""),
    ("no cluster barrier", "barrier.cluster.wait.aligned;", ""),
    ("no arrival", "@%p1 mbarrier.arrive.shared.b64 _, [%r1];", ""),
    ("no announcement", "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 4096;", ""),
    ("no copy", "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", ""),
    ("no commit", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];", ""),
    ("no proxy fence", "fence.proxy.async.shared::cta;", ""),
    ("no tcgen05 fence", "tcgen05.fence::after_thread_sync;", ""),
    ("no wait for tensor memory", "tcgen05.wait::ld.sync.aligned;", ""),
    ("no wait for a group", "cp.async.bulk.wait_group.read 0;", ""),
    ("no group", "cp.async.commit_group;", ""),
    ("no wgmma fence", "wgmma.fence.sync.aligned;", ""),
    ("no dealloc", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;", ""),
    ("no warp barrier", "bar.warp.sync -1;", ""),
    (
        "a wait that passes",
        "{ .reg .pred w; mbarrier.try_wait.parity.shared.b64 w, [%r1], %r2; selp.b32 %r3, 1, 0, w; }",
        "{ .reg .pred w; setp.eq.u32 w, 0, 0; selp.b32 %r3, 1, 0, w; }",
    ),
    (
        "the other parity",
        "mbarrier.try_wait.parity.shared.b64 w, [%r1], 1;",
        "mbarrier.try_wait.parity.shared.b64 w, [%r1], 0;",
    ),
    ("one arrival more expected", "mbarrier.init.shared.b64 [%r1], 2;", "mbarrier.init.shared.b64 [%r1], 3;"),
    (
        "one arrival fewer expected",
        "mbarrier.init.shared.b64 [%r1], 2;",
        "mbarrier.init.shared.b64 [%r1], 1;",
    ),
    (
        "half the bytes",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 4096;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 2048;",
    ),
    (
        "half the bytes",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r2;",
        "{ .reg .b32 other; shr.u32 other, %r2, 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r1], other; }",
    ),
    (
        "the next barrier",
        "@%p1 mbarrier.arrive.shared.b64 _, [%r1+16];",
        "@%p1 mbarrier.arrive.shared.b64 _, [%r1+24];",
    ),
    (
        "bytes for the next barrier",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2+8];",
    ),
    (
        "the next columns",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1+16];",
    ),
    ("another barrier id", "bar.sync 3, 64;", "bar.sync 4, 64;"),
    ("one group more under way", "cp.async.wait_group 0;", "cp.async.wait_group 1;"),
    (
        "half the columns freed",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;",
    ),
    ("wait for reads only", "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"),
    (
        "release made relaxed",
        "red.release.gpu.global.add.u32 [%rd1], 1;",
        "red.relaxed.gpu.global.add.u32 [%rd1], 1;",
    ),
]

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 %t, %a, %s; .reg .b64 %p, %o;
.shared .align 4 .b8 buffer[256];
ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; shl.b32 %a, %t, 2; mov.u32 %s, buffer; add.u32 %s, %s, %a;
st.shared.u32 [%s], %t;
bar.sync 0;
mov.u32 %s, buffer; xor.b32 %a, %a, 128; add.u32 %s, %s, %a; ld.shared.u32 %t, [%s];
cvt.u64.u32 %o, %a; add.u64 %p, %p, %o; st.global.u32 [%p], %t;
ret;
}
"""


@pytest.mark.parametrize(("operator", "old", "new"), CHANGES, ids=[change[0] for change in CHANGES])
def test_an_operator_changes_one_statement(operator, old, new):
    found = [m for m in mutants(f"// head\n{old}\n") if m.operator == operator]
    assert [(m.line, m.old, m.new) for m in found] == [(2, old, new)]


FENCE, BARRIER = "fence.proxy.async.shared::cta;", "@%p1 mbarrier.arrive.shared.b64 _, [%r1];"


@pytest.mark.parametrize("between", ["", "st.shared.u32 [%r2], 1;", "@%p2 mov.u32 %r3, 0;"])
def test_a_fence_moves_behind_the_next_barrier(between):
    (found,) = [m for m in mutants(f"{FENCE}\n{between}\n{BARRIER}\nret;") if m.operator == LATE]
    assert found.text == f"{between}\n{BARRIER}\n{FENCE}\nret;"


@pytest.mark.parametrize("between", ["$L1:", "@%p2 bra $L1;", "ret;"])
def test_a_fence_that_no_barrier_always_follows_stays(between):
    assert LATE not in {m.operator for m in mutants(f"{FENCE}\n{between}\n{BARRIER}")}


def test_every_operator_is_tested():
    assert {operator for operator, _, _ in CHANGES} == set(OPERATORS)


@dataclass
class Kernel:
    name: str
    ptx: Path


@pytest.fixture
def recorded(tmp_path) -> Recorded:
    (tmp_path / "text.ptx").write_text(KERNEL)
    array = np.zeros(256, np.uint8)
    shape = {"grid": (1, 1, 1), "block": (64, 1, 1), "cluster": (1, 1, 1), "shared": 0}
    at = 0x7F00_0000_0000
    path = save(tmp_path / "kept", Kernel("k", tmp_path / "text.ptx"), [at], shape, {at: (array, "out")})
    return Recorded.load(path)


def test_a_recorded_launch_runs_again(recorded):
    result, (out,) = recorded.run()
    assert result.verdict == "clean"
    assert out.view(np.uint32).tolist() == list(range(64))


def test_a_mutant_that_matters_is_found(recorded):
    subject = Subject(recorded)
    (mutant,) = [m for m in subject.mutants if m.operator == "no CTA barrier"]
    outcome = subject.try_out(mutant)
    assert (outcome.kind, outcome.near) == ("error", True)
    assert "found: 1 of 1" in summary([outcome])


def test_a_line_that_no_thread_comes_to(recorded):
    text = recorded.ptx.replace("ret;", "ret;\nbar.sync 1;\nret;", 1)
    subject = Subject(Recorded("k", text, recorded.spec, recorded.arrays))
    outcomes = [subject.try_out(m) for m in subject.mutants if m.operator == "no CTA barrier"]
    assert [outcome.kind for outcome in outcomes] == ["error", "not reached"]
    assert summary(outcomes).startswith("1 mutants of 1 kernels")


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        (
            "race",
            "tile + 64 B: the read (PTX line 7) (8 accesses)",
            "tile + 96 B: the read (PTX line 7) (9 accesses)",
            True,
        ),
        ("race", "tile: the read (PTX line 7)", "tile: the read (PTX line 8)", False),
        ("mbarrier", "bars + 8 B is left in phase 1", "bars + 8 B is left in phase 2", True),
        ("mbarrier", "bars + 8 B is left in phase 1", "bars + 16 B is left in phase 1", False),
    ],
)
def test_a_finding_is_new_where_its_lines_or_its_barrier_are(kind, one, other, same):
    keys = [_key(ptxsim.Finding(kind, "review", message, "", {}, {})) for message in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_a_tensor_map_is_kept_with_its_base(tmp_path):
    (tmp_path / "text.ptx").write_text(KERNEL)
    array = np.arange(1024, dtype=np.uint8)
    tmap = ptxsim.TensorMap(array, box=(16,), dims=(64,), dtype=np.float32, byte_offset=128)
    at = array.ctypes.data
    kernel, shape = Kernel("k", tmp_path / "text.ptx"), dict.fromkeys(("grid", "block", "cluster"), (1, 1, 1))
    path = save(tmp_path, kernel, [tmap], shape | {"shared": 0}, {at: (array, "in")})
    kept = Recorded.load(path)
    again = Recorded._argument(kept.spec["args"][0], {at: kept.arrays[0]})
    assert (again.box, again.dims, again.dtype, again.byte_offset) == ((16,), (64,), np.float32, 128)
    assert again.array is kept.arrays[0]
