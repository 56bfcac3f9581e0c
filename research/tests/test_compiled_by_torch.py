"""Kernels that PyTorch's compiler wrote, with what they read and left on an H200."""

from dataclasses import replace

import pytest

from research.chip.replay import KEPT, load_caught

CAUGHT = {one.name: one for one in load_caught(KEPT)}
# Every thread reads the word that thread 0 then writes back: a race by PTX's text, in which the others' loads
# go nowhere.
RACES = {"triton_for_fused_0-1", "triton_for_fused_0-2", "triton_poi_fused_native_group_norm_backward_1-1"}


def test_the_collection_is_what_it_claims():
    assert len(CAUGHT) > 90 and set(CAUGHT) > RACES
    assert {one.spec["workload"] for one in CAUGHT.values()} > {"attention", "products", "norms", "sorting"}


ATOMICS = (
    "triton_poi_fused__unsafe_index_put"  # 100,000 atomic additions, one lane after the other: six seconds
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith(ATOMICS) else [])
        for name in sorted(set(CAUGHT) - RACES)
    ],
)
def test_the_chip_and_the_simulator_agree(name):
    assert CAUGHT[name].check("adverse") == ""


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("name", sorted(RACES))
def test_a_word_that_all_read_and_one_writes_back_is_a_race_that_changes_nothing(name, order):
    result, left = CAUGHT[name].launch(order)
    assert {(f.kind, f.severity) for f in result.findings} == {("race", "review")}
    assert [CAUGHT[name].differs(number, array) for number, array in enumerate(left)] == [""] * len(left)


def test_kernels_for_blackwell_leave_what_hopper_left():
    """Those are in the list above; Triton 3.6 commits to an address that is not generic."""
    ours = [one for name, one in CAUGHT.items() if name.endswith(".sm_100a") and "tcgen05.mma" in one.ptx]
    assert len(ours) >= 2
    result, _ = ours[0].launch("program")
    assert any("generic address" in f.message for f in result.findings if f.severity == "review")


def test_a_byte_that_differs_is_seen():
    one = next(one for one in CAUGHT.values() if one.check() == "" and one.dtype_of(0).kind == "i")
    first, *others = one.after
    first = first.copy()
    first[0] ^= 1
    assert "1 of" in replace(one, after=(first, *others)).check()
