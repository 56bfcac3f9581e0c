"""Tables of a mutation run: outcomes and localisation by operator and by source."""

from __future__ import annotations

from collections import Counter, defaultdict

from research.mutation.harmless import argument, forgiven
from research.mutation.locate import localised

_COLUMNS = (
    "error",
    "wrong numbers",
    "review",
    "incomplete",
    "no verdict",
    "crash",
    "missed",
    "forgiven",
    "equivalent",
    "refused",
)


def outcome_of(row: dict) -> str:
    """The column of a mutant: one that passes without an argument for being
    equivalent or forgiven is missed.
    """
    kind = row["outcome"]["kind"]
    if kind in ("clean", "review", "equivalent") and argument(row):
        return "equivalent"
    if kind == "review" and forgiven(row):
        return "forgiven"
    return "missed" if kind == "clean" else kind


def report(rows: list[dict], listing: bool = False) -> None:
    for title in ("operator", "source"):
        groups = defaultdict(list)
        for row in rows:
            groups[row[title]].append(row)
        print(f"\n{title:20} " + " ".join(f"{c:>13}" for c in _COLUMNS) + "     localised")
        for name in sorted(groups):
            _line(name, groups[name])
    _line("all", rows)
    _summary(rows)
    if listing:
        _list(rows)


def _line(name: str, rows: list[dict]) -> None:
    counts = Counter(outcome_of(row) for row in rows)
    with_finding = [row for row in rows if row["outcome"]["kind"] == "error" and row["outcome"]["findings"]]
    good = sum(bool(localised(row)) for row in with_finding)
    place = f"{good:>5} of {len(with_finding)}" if with_finding else ""
    print(f"{name:20} " + " ".join(f"{counts.get(c, 0) or '':>13}" for c in _COLUMNS) + f"  {place}")


def _summary(rows: list[dict]) -> None:
    counts = Counter(outcome_of(row) for row in rows)
    compiled = len(rows) - counts["refused"]
    alive = compiled - counts["equivalent"] - counts["forgiven"]
    found = counts["error"] + counts["wrong numbers"]
    ways = Counter(
        localised(row) for row in rows if row["outcome"]["kind"] == "error" and row["outcome"]["findings"]
    )
    total = sum(ways.values())
    print(f"\n{compiled} mutants compile, {alive} of them are not equivalent", end="")
    print(f" ({counts['forgiven']} are forgiven by every known chip and lead to a review)")
    print(f"found: {found} ({100 * found / max(alive, 1):.1f} %) by an error or by numbers", end="")
    told = found + counts["review"] + counts["incomplete"]
    print(f"; {told} ({100 * told / max(alive, 1):.1f} %) including those with a review or `incomplete`")
    good = total - ways[""]
    print(f"first finding localised: {good} of {total} ({100 * good / max(total, 1):.1f} %): {dict(ways)}")


def _list(rows: list[dict]) -> None:
    for row in rows:
        kind = outcome_of(row)
        if kind in ("missed", "review", "no verdict", "crash", "incomplete"):
            _show(row, kind)
    for row in rows:
        if row["outcome"]["kind"] == "error" and row["outcome"]["findings"] and not localised(row):
            _show(row, "ELSEWHERE")


def _show(row: dict, kind: str) -> None:
    outcome = row["outcome"]
    print(f"\n== {kind}: {row['source']}: {row['operator']}, lines {row['lines'][0]}-{row['lines'][-1]}")
    print("  - " + row["old"].strip()[:300].replace("\n", "\n    "))
    print("  + " + row["new"].strip()[:300].replace("\n", "\n    "))
    if not outcome["findings"]:
        print(f"  {outcome['message'][:200]}")
    for finding in outcome["findings"][:3]:
        head = finding["message"].split("\n")[0]
        print(f"  {finding['severity']}: {finding['kind']}: {head} [line {finding['where'].get('line')}]")
