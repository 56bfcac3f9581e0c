"""Barriers in dynamic shared memory have the names that the source lines of their inits give them."""

from __future__ import annotations

import pytest

import ptxsim
from ptxsim.checks.barrier_names import _name_in

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n"
TEXT = """.visible .entry k() { .reg .b32 %s; .reg .b64 %x; .reg .pred %p;
  mov.u32 %s, smem;
  .loc 1 1 1
  mbarrier.init.shared.b64 [%s+64], 1;
  mbarrier.init.shared.b64 [%s+FIRST], 1;
  .loc 1 2 1
  mbarrier.init.shared.b64 [%s+80], 1;
  mbarrier.init.shared.b64 [%s+88], 1;
  .loc 1 3 1
w: mbarrier.try_wait.parity.shared.b64 %p, [%s+88], 0;
  @!%p bra w;
  ret; }
.file 1 "PATH"
"""
LINES = "  init_barrier(&s.full[i], 1);  // of data\n  init_barrier(&s->empty[i], 1);\n  wait(&x[1], 0);\n"


def told(path, first: int = 72) -> str:
    text = HEAD + TEXT.replace("PATH", str(path)).replace("FIRST", str(first))
    found = ptxsim.load(text).launch("k", block=1, shared_bytes=128).findings
    return next(f for f in found if f.kind == "deadlock").message


def test_a_barrier_has_the_name_that_its_init_shows(tmp_path):
    (tmp_path / "kernel.cu").write_text(LINES)
    assert "waiting for s.empty[1]" in told(tmp_path / "kernel.cu")


def test_barriers_that_do_not_lie_side_by_side_are_no_array(tmp_path):
    (tmp_path / "kernel.cu").write_text(LINES.replace("s->empty[i]", "s.full[i]"))
    assert "waiting for s.full[3]" in told(tmp_path / "kernel.cu")
    assert "waiting for smem + 88 B" in told(tmp_path / "kernel.cu", first=104)


def test_where_the_text_does_not_tell_the_inits_apart_none_has_a_name(tmp_path):
    """nvcc names the places around an inlined line once, not for each copy of an unrolled loop."""
    (tmp_path / "kernel.cu").write_text(LINES)
    wraps = "".join(
        f"  .loc 1 {n} 1\n  .loc 1 40 1, function_name $L__wrap, inlined_at 1 {n} 1\n" for n in (1, 2)
    )
    init = (
        "  .loc 1 49 1, function_name $L__init, inlined_at 1 40 1\n  mbarrier.init.shared.b64 [%s+{}], 1;\n"
    )
    one, other = wraps.split("  .loc 1 2 1")
    body = one + init.format(64) + "  .loc 1 2 1" + other + "".join(init.format(at) for at in (80, 72, 88))
    old = TEXT[TEXT.index("  .loc 1 1 1") : TEXT.index("  .loc 1 3 1")]
    text = HEAD + TEXT.replace(old, body).replace("PATH", str(tmp_path / "kernel.cu"))
    found = ptxsim.load(text).launch("k", block=1, shared_bytes=128).findings
    assert any("waiting for smem + 88 B" in f.message for f in found)


@pytest.mark.parametrize("lines", ["", "  init_all();\n" * 3])
def test_without_a_name_in_the_source_it_has_its_offset(tmp_path, lines):
    (tmp_path / "kernel.cu").write_text(lines)
    assert "waiting for smem + 88 B" in told(tmp_path / "kernel.cu")
    assert "waiting for smem + 88 B" in told(tmp_path / "nowhere.cu")


@pytest.mark.parametrize(
    "line, name",
    [
        ("init_barrier(&full[i], 0, 1);", "full"),
        ("shared->pipe.full[stage].init(1);", "shared.pipe.full"),
        ("cutlass::arch::ClusterBarrier::init(&plan.bar_q, 1);", "plan.bar_q"),
        ("init(bar, 1);", ""),
    ],
)
def test_names_in_lines(line, name):
    assert _name_in(line) == name
