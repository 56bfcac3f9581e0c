"""Which threads a message names: warps as people count them, and CTA by CTA if a cluster has several."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ptxsim.checks.diagnosis.number_agreement import agree, role

FULL = 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("ctas", "warps", "lanes", "text"),
    [
        (1, 4, {0: FULL}, "warp 0"),
        (1, 4, {0: FULL, 1: FULL, 2: FULL}, "warps 0-2"),
        (1, 12, dict.fromkeys(range(4, 8), FULL), "WG1"),
        (1, 12, {4: FULL, 6: FULL}, "WG1 warps 0, 2"),
        (1, 12, dict.fromkeys((3, 4), FULL), "WG0 warp 3, WG1 warp 0"),
        (1, 12, {5: 1}, "WG1 warp 1 lane 0"),
        (2, 8, {9: 1}, "CTA 1 WG0 warp 1 lane 0"),
        (2, 8, dict.fromkeys([*range(4), *range(8, 12)], FULL), "CTA 0 WG0 and CTA 1 WG0"),
        (2, 8, {0: 1, 8: 1}, "CTA 0 WG0 warp 0 lane 0 and CTA 1 WG0 warp 0 lane 0"),
    ],
)
def test_a_group_is_named(ctas, warps, lanes, text):
    cluster = SimpleNamespace(ctas=ctas, warps_per_cta=warps)
    assert role(cluster, lanes) == text


def test_several_ctas_are_several():
    assert agree("CTA 0 WG0 and CTA 1 WG0", "waits") == "wait"
    assert agree("CTA 0 WG0", "waits") == "waits"
