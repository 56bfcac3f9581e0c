"""Compares several tools on the same planted mistakes.

    python -m research.referee [FOLDER] [--kept] [--write] [--minutes M]

Runs ptxsim again on the Hopper rung with its planted mistakes (research/chip/negative.tar.xz, which also has
an H200's behaviour on each) and, if FOLDER holds recorded launches of the TIRx library
(research/tirx_kernels/recorded.py), on mistakes planted in those. Reports of other tools are read from
`results/TOOL.json`, {mistake: text}; a tool that nobody has run has no column. --write rewrites the table of
README.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from research import packed, store
from research.chip import negative
from research.mutation.ptx_operators import mutants
from research.referee import hopper as rungs
from research.referee.planted import PLANTED
from tirxlab.artifact import Artifact

HERE = Path(__file__).parent
CHIP = HERE.parent / "chip" / "results" / "negative-nvidia-h200.json.xz"
TOOLS = {  # file in results/ -> head of its column
    "racecheck": "TIRx racecheck",
    "synccheck": "TIRx synccheck",
    "sanitizer": "compute-sanitizer",
}
ORDERS = ("program", "adverse")
HOPPER = "Hopper GEMM 256x256x512"
SAID = 45  # characters of a first finding
_SEVERITIES = ("error", "incomplete", "review", "clean")  # worst first
_KILLED = "the kernel did not finish within 6 s and its process was killed"
_PLACE = re.compile(r"(<!-- table: begin -->\n).*(<!-- table: end -->)", re.S)


@dataclass(frozen=True)
class Row:
    kernel: str
    mistake: str  # "" for the unchanged kernel
    verdict: str  # the worst of both orders; `wrong numbers` if no finding is an error
    said: str  # first finding
    chip: str = ""  # behaviour on an H200

    @property
    def key(self) -> str:
        return f"{self.kernel}: {self.mistake or 'as it is'}"


def hopper_as_kept() -> list[Row]:
    """ptxsim's stored results from when the mistakes ran on the chip, without running it again."""
    rows = []
    for bug, entry in json.loads(packed.read(CHIP))["bugs"].items():
        if entry["track"] == "hopper":
            said = list(entry["findings"].items())
            verdict = min((key.split(":")[0] for key, _ in said), key=_SEVERITIES.index, default="clean")
            first = f"{said[0][0].split(': ')[1]}: {said[0][1].splitlines()[0][:SAID]}" if said else ""
            verdict = "wrong numbers" if verdict != "error" and "wrong" in entry["result"] else verdict
            mistake = "" if bug.startswith("none") else bug
            rows.append(Row(HOPPER, mistake, verdict, first, entry["chip"]))
    return rows


def hopper() -> list[Row]:
    chip = json.loads(packed.read(CHIP))["bugs"]
    files = store.load(negative.FILE)
    rows = []
    for number, (bug, entry) in enumerate(json.loads(files["index.json"]).items()):
        if entry["track"] == "hopper":
            artifact = Artifact.from_bytes(files[f"{number}.lab"])
            did = chip.get(bug, {}).get("chip", "")
            rows.append(_hopper_row(artifact, "" if bug.startswith("none") else bug, did))
    return rows


def later_rungs() -> list[Row]:
    """Three later rungs with an operator of ptx_operators.py planted in each place of `hopper.py`."""
    from tirxlab.devices import sim

    rows, log = [], rungs.log()
    for key, artifact in rungs.cases().items():
        kernel, _, mistake = key.partition(": ")
        if kernel != HOPPER:
            findings, right = [], True
            for order in ORDERS:
                data, expected = rungs.arrays(key, artifact)
                findings += sim.run(artifact, data, order=order).findings
                right &= negative.judge(data[2].astype("float32"), expected) == "right"
            mistake = "" if mistake == "as it is" else mistake
            rows.append(_row(kernel, mistake, findings, right, log[key]["alone"]["result"]))
            print(f"{key}: {rows[-1].verdict}", flush=True)
    return rows


def _hopper_row(artifact: Artifact, mistake: str, chip: str) -> Row:
    from tirxlab.devices import sim

    findings, right = [], True
    for order in ORDERS:
        data = negative.arrays(artifact, "hopper")
        findings += sim.run(artifact, data, order=order).findings
        right &= negative.judge(data[2], negative.reference("hopper", *data[:2])) == "right"
    return _row(HOPPER, mistake, findings, right, chip)


def library(folder: Path, minutes: float) -> list[Row]:
    """Mistakes of planted.py in recorded launches; those that the time limit
    leaves no time for are left out.
    """
    from research.tirx_kernels.recorded import Recorded

    rows, end = [], time.monotonic() + 60 * minutes
    for path in sorted(folder.glob("*.json")):
        recorded = Recorded.load(path)
        good = {order: recorded.run(order=order, jobs=1)[1] for order in ORDERS}
        every = [None, *mutants(recorded.ptx)]
        for mistake, number in [("", 0), *_chosen(every)]:
            if time.monotonic() < end:
                rows.append(_library_row(recorded, mistake, every[number], good))
                print(f"{rows[-1].key}: {rows[-1].verdict}", flush=True)
    return rows


def _chosen(every: list) -> list[tuple[str, int]]:
    """(operator in words, index) of each operator of PLANTED, at its first and at its last place."""
    found = []
    for operator, words in PLANTED.items():
        places = [i for i, mutant in enumerate(every) if mutant is not None and mutant.operator == operator]
        for name, place in zip(("first", "last"), dict.fromkeys((*places[:1], *places[-1:])), strict=False):
            found.append((f"{words} ({name} of {len(places)})" if len(places) > 1 else words, place))
    return found


def _library_row(recorded, mistake: str, mutant, good: dict) -> Row:
    findings, right = [], True
    for order in ORDERS:
        options = {"order": order, "jobs": 1, "max_instructions": 50_000_000}
        result, arrays = recorded.run(mutant.text if mutant else None, **options)
        findings += result.findings
        right &= all((a == b).all() for a, b in zip(arrays, good[order], strict=True))
    return _row(recorded.name.rpartition("-")[0], mistake, findings, right)


def _row(kernel: str, mistake: str, findings: list, right: bool, chip: str = "") -> Row:
    worst = min(findings, key=lambda f: _SEVERITIES.index(f.severity), default=None)
    verdict = worst.severity if worst else "clean"
    verdict = "wrong numbers" if verdict != "error" and not right else verdict
    said = f"{worst.kind}: {str(worst.message).splitlines()[0][:SAID]}" if worst else ""
    return Row(kernel, mistake, verdict, said, chip)


def table(rows: list[Row]) -> str:
    others = {head: said for name, head in TOOLS.items() if (said := _results(name))}
    heads = ["kernel", "planted mistake", "ptxsim", "first finding", "H200 did", *others]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for before, row in zip([None, *rows], rows, strict=False):
        kernel = "" if before and before.kernel == row.kernel else row.kernel
        cells = [kernel, row.mistake or "none", row.verdict, row.said, row.chip.replace(_KILLED, "hung")]
        cells += [said.get(row.key, "") for said in others.values()]
        while not cells[-1]:
            cells.pop()
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def _results(name: str) -> dict[str, str]:
    if name == "sanitizer":
        return {key: rungs.words(entry) for key, entry in rungs.log().items()}
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def on_page(new: set[str]) -> list[Row]:
    """The rows of README.md for kernels that are not run this time."""
    found, last = list[Row](), ""  # a kernel's later rows leave its name out
    for line in _PLACE.search((HERE / "README.md").read_text())[0].splitlines():
        kernel, mistake, verdict, said, chip, *_ = [c.strip() for c in line.split("|")[1:]] + [""] * 5
        last = kernel = kernel or last
        if verdict and kernel not in new | {"kernel", "---"}:
            found.append(Row(kernel, mistake.replace("none", ""), verdict, said, chip))
    return found


def totals(rows: list[Row]) -> str:
    planted = [row for row in rows if row.mistake]
    found = [row for row in planted if row.verdict in ("error", "wrong numbers")]
    alarms = [row for row in rows if not row.mistake and row.verdict == "error"]
    kernels = len({row.kernel for row in rows})
    text = f"{len(planted)} mistakes in {kernels} kernels. ptxsim: {len(found)} found ("
    text += f"{sum(row.verdict == 'error' for row in planted)} by an `error`), "
    said = {key: any(entry[tool]["said"] for tool in rungs.TOOLS) for key, entry in rungs.log().items()}
    wrong = sum(said[row.key] for row in rows if not row.mistake and row.key in said)
    count, known = sum(said.get(row.key, False) for row in planted), sum(row.key in said for row in planted)
    text += f"{sum(r.verdict == 'review' for r in planted)} a `review`, {len(alarms)} false alarms. "
    return text + f"compute-sanitizer: {count} of the {known} in Hopper kernels, {wrong} false alarms."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=600.0, help="limit for the kernels of the library")
    parser.add_argument(
        "--kept", action="store_true", help="take the Hopper kernels' stored results, without running them"
    )
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = (hopper_as_kept() if given.kept else hopper()) + later_rungs()
    if given.folder is not None:
        if not any(given.folder.glob("*.json")):
            print(f"{given.folder} holds no recorded launch: see research/tirx_kernels/recorded.py")
            return 2
        rows += library(given.folder, given.minutes)
    else:
        rows += on_page({row.kernel for row in rows})
    for row in rows:
        print(f"{row.key}: {row.verdict} {row.said[:100]}")
    print(totals(rows))
    if given.write:
        text, page = f"{totals(rows)}\n\n{table(rows)}", HERE / "README.md"
        page.write_text(_PLACE.sub(lambda m: f"{m[1]}{text}\n{m[2]}", page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
