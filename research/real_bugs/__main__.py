"""The public fixes under ptxsim: `python -m research.real_bugs [NAME ..] [--show] [--write]`.

Runs each pair, before and after its fix, under three orders. NAME: only cases with this in their name.
--show: prints the first finding, too. --write: rewrites the table of README.md. Exit code 1 if a fixed kernel
is an `error`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter

from research.real_bugs.corpus import FOLDER, Case, Verdict, load_corpus, outcome, run

_HEAD = "| source | date | what was wrong | before the fix |\n|---|---|---|---|"
_PLACE = re.compile(r"(<!-- table: begin -->\n).*(<!-- table: end -->)", re.S)


def row(case: Case, before: Verdict, after: Verdict) -> str:
    name, date = case.source.rsplit(", ", 1)
    first = before.findings[0] if before.findings else None
    known = outcome(case, before)
    said = "" if known == "cause first" else f"{known}: "
    said += f"{first.severity} `{first.kind}`" if first else "clean"
    said += f" ({case.open})" * bool(case.open) + f"; after it: {after.verdict}" * (after.verdict != "clean")
    cells = [f"[{name}]({case.link})", date, case.wrong.replace("|", "\\|"), said]
    return f"| {' | '.join(cells)} |"


def totals(results: list[tuple[Case, Verdict, Verdict]]) -> str:
    counts = Counter(outcome(case, before) for case, before, _ in results)
    found = [before for case, before, _ in results if outcome(case, before) != "missed"]
    reviews = sum(before.verdict == "review" for before in found)
    errors = sum(after.verdict == "error" for _, _, after in results)
    text = f"{len(results)} pairs. Before: {counts['cause first']} with the cause first, {counts['found']} "
    text += f"found otherwise, {counts['missed']} missed; {reviews} of those found are a `review`. "
    return text + f"After: {errors} with an `error`."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    cases = [c for c in load_corpus() if not given.names or any(name in c.name for name in given.names)]
    if not cases:
        print(f"no case has {' or '.join(given.names)} in its name: see research/real_bugs/cases/")
        return 2
    results = []
    for case in cases:
        results.append((case, run(case, False), run(case, True)))
        _, before, after = results[-1]
        print(f"{case.name}: {outcome(case, before)}, after {after.verdict}", flush=True)
        if given.show:
            print("\n".join(f"    {finding}" for finding in (*before.findings[:1], *after.findings[:1])))
    print(totals(results))
    if given.write and not given.names:
        table = "\n\n".join([totals(results), "\n".join([_HEAD, *(row(*result) for result in results)])])
        page = FOLDER / "README.md"
        page.write_text(_PLACE.sub(lambda m: f"{m[1]}{table}\n{m[2]}", page.read_text()))
    return int(any(after.verdict == "error" for _, _, after in results))


if __name__ == "__main__":
    sys.exit(main())
