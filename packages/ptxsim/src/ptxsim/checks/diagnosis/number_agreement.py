"""Number agreement: sentences are written about one group ("it waits") but may be about several warps."""

from __future__ import annotations

import re

from ptxsim.events.views import Cluster
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.report.findings import lanes_text

_PLURALS = {
    "waits": "wait",
    "passes": "pass",
    "asks": "ask",
    "has": "have",
    "does": "do",
    "is": "are",
    "it": "they",
    "its": "their",
    "arrives": "arrive",
    "adds": "add",
    "takes": "take",
    "commits": "commit",
    "loads": "load",
    "comes": "come",
    "issues": "issue",
    "signals": "signal",
}


def is_plural(who: str) -> bool:
    """Whether a name such as `warps 1-3`, `WG1 warp 0 lanes 4-7` or `WG0, WG1 warp 2` means more than one."""
    return bool(re.search(r"\b(warps|lanes)\b|, | and ", who))


def agree(who: str, text: str) -> str:
    """`text`, written in the singular, in the number of `who`: `its loop` becomes `their loop`."""
    if not is_plural(who):
        return text
    return re.sub(r"\w+", lambda word: _PLURALS.get(word[0], word[0]), text)


def of_first_cta(cluster: Cluster, lanes: dict[int, int]) -> dict[int, int]:
    """Of these lanes by warp, those in the lowest CTA."""
    first = min(lanes, default=0) // cluster.warps_per_cta
    return {warp: mask for warp, mask in lanes.items() if warp // cluster.warps_per_cta == first}


def role(cluster: Cluster, lanes: dict[int, int]) -> str:
    """`CTA 1 WG0`, `WG1 warp 3 lane 0`: warps numbered within their warpgroup, with the CTA's rank.

    lanes: warp of the cluster -> mask. Warps of several CTAs are named CTA by CTA.
    """
    first = of_first_cta(cluster, lanes)
    if len(first) < len(lanes):
        rest = {warp: mask for warp, mask in lanes.items() if warp not in first}
        return f"{role(cluster, first)} and {role(cluster, rest)}"
    warps = sorted(w % cluster.warps_per_cta for w in lanes)
    grouped = cluster.warps_per_cta > 4 and cluster.warps_per_cta % 4 == 0
    parts = []
    for group in sorted({w // 4 for w in warps}) if grouped else [0]:
        mine = [w % 4 for w in warps if w // 4 == group] if grouped else warps
        prefix = f"WG{group}" if grouped else ""
        whole = len(mine) == min(4, cluster.warps_per_cta) and len(mine) > 1
        names = f"warp{'s' if len(mine) > 1 else ''} {_runs(mine)}"
        parts.append(prefix if whole and grouped else f"{prefix} {names}".strip())
    text = ", ".join(parts)
    masks = set(lanes.values())
    mask = masks.pop() if len(masks) == 1 else WHOLE_WARP
    if mask != WHOLE_WARP:
        text += f" lane{'' if mask & (mask - 1) == 0 else 's'} {lanes_text(mask)}"
    return f"CTA {min(lanes, default=0) // cluster.warps_per_cta} {text}" if cluster.ctas > 1 else text


def _runs(numbers: list[int]) -> str:
    return lanes_text(sum(1 << n for n in numbers))
