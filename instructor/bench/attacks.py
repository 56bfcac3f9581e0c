"""Writes the table of all attacks that tests try.

`python instructor/bench/attacks.py` writes instructor/exploits/attacks.md. A test fails if that page is not
what this makes of the catalogues.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "instructor/tests"), *map(str, (ROOT / "packages").glob("*/src"))]

from more_shows import MORE  # noqa: E402
from shows import SHOWS  # noqa: E402

from instructor.exploits.catalogue import EXPLOITS  # noqa: E402
from instructor.exploits.escapes import ESCAPES  # noqa: E402
from instructor.exploits.handins import HANDINS  # noqa: E402
from instructor.exploits.leaks import LEAKS  # noqa: E402

PAGE = ROOT / "instructor/exploits/attacks.md"
KINDS = (  # file, test, what a naive grader does, what happens here
    (
        "catalogue.py, tricks.py, damage.py",
        "test_exploits.py",
        "gives what is asked for, in the same test",
        "no points (`work`: those of a result alone; `speed`: none for speed), nothing shown, the next step goes on",
        [(one.name, one.gain) for one in EXPLOITS],
    ),
    (
        "escapes.py",
        "test_escapes.py",
        "runs it as it is, and it works, in the same test",
        "no level of confinement lets it",
        [(one.name, one.gain) for one in ESCAPES],
    ),
    (
        "handins.py",
        "test_handins.py",
        "opens or compares it in its own process; where a kind says `time` or an error, the same file's test shows it",
        "costs itself alone, and is named",
        [(one.name, f"{one.where}: {one.hurts or 'grade'}") for one in HANDINS],
    ),
    (
        "leaks.py",
        "test_leaks.py",
        "prints what it is told (not run)",
        "one bit a step: whether it passes",
        [(one.name, "hidden size") for one in LEAKS],
    ),
    (
        "instructor/tests/shows.py, more_shows.py",
        "test_shows.py",
        "compares results alone, and D is right",
        "no points for the implementation, and a hint that says what is missing",
        [(f"{one.name} (step {one.step})", "technique") for one in (*SHOWS, *MORE)],
    ),
)
# What is shown in a test of its own: it needs a stand-in for a GPU, or two submissions.
APART = (
    ("cache replay, lazy output on a GPU", "test_grading_speed.py", "D is overwritten before each launch that is timed, and rows of each are compared"),
    ("data kept in L2 from launch to launch", "test_grading_speed.py", "`evict_last`, `createpolicy`, `applypriority`: not timed; L2 is flushed"),
    ("D left in shared memory for the next launch that is timed", "test_grading_speed.py", "what reads memory that nobody has written is not timed"),
    ("D left anywhere by a kernel that tells a chip from the simulator, as by its addresses", "test_grading_speed.py", "each launch that is timed multiplies other numbers, and its D is compared"),
    ("no work in one launch of two, as the number of polls of a barrier says: the last may be right", "test_grading_speed.py", "the same: rows of each launch's D are compared"),
    ("D left in local memory, tensor memory or registers for the next launch", "test_grading_speed.py", "the same; registers are followed through the text"),
    ("a time that is too good", "test_grading_speed.py", "below the floor of the chip or of the prediction: no time"),
    ("more or fewer launches than are timed", "test_devices.py", "launches are counted, another number is no time"),
    ("a kernel that starts another one", "test_grading.py", "refused from its PTX"),
    ("an answer left in an input for the next launch", "test_judging.py, test_grading_speed.py", "wrong on the simulator; inputs are put back before each launch that is timed"),
    ("a copy beside any amount of other text", "test_class.py", "listed as alike"),
    ("less work once D is there", "test_judging.py", "wrong: the whole grid is run again on its own product"),
    ("step 4 in the places of 5 to 10", "test_grading.py", "a result that lacks what the step before has counts in part"),
    ("CUDA built by `exec`, a copied text behind it", "test_class.py", "listed as alike by what is built"),
    ("hidden sizes kept by one step's code, said by another's", "test_leaks.py", "hidden sizes are built last, and nothing that is told is built in that process"),
    ("the clock, told by what is built behind a hidden size that took until a time which tells it", "test_leaks.py", "what is told of is built before any hidden size"),
    ("the same by what is built for the timing on a GPU", "test_grading_speed.py", "nothing that it says is told, only that it does not build"),
    ("which sizes are never drawn", "test_grading.py, test_leaks.py", "what is drawn does not depend on what is hidden"),
    ("several limits, so that the load of the machine says which is met first", "test_unfinished.py", "one sentence, and the same patience with what follows, for all limits"),
    ("each build and each run just below its limit", "test_worker.py, test_unfinished.py", "a file has a time for all its steps; then each gets the least"),
    ("a draft of noise, or of a million files", "test_worker.py", "4 MiB, judged before it is opened"),
    ("a draft with 60 megabytes of spaces, which packs to nothing: minutes and gigabytes of the grader's", "test_draft_size.py", "4 MiB of CUDA text at most"),
    ("a name that reads as one that the grader makes", "test_class.py", "no two names become one"),
    ("marks piled up over a letter, over the lines beside it", "test_class.py, test_worker.py", "three at most"),
    ("a name that takes another's row of the roster", "test_class.py", "an ending is left out where one file alone can be meant"),
    ("the name of a student of the roster, for grades and adjustments", "test_ledger.py", "the roster says whose a submission is; others are not in the roster"),
    ("statements that change nothing between the lines of a copy, `x + 0`", "test_class.py", "listed as alike: both texts are compared without them"),
    ("copied code before the first step, called from the steps", "test_likeness.py", "listed as alike: a file is compared from its first line"),
    ("an error and an open quote, behind which nobody reads a copy that runs", "test_likeness.py", "what stands behind an error is compared too"),
    ("`exec` in letters that Python reads as the same", "test_likeness.py", "names are taken as Python takes them; compared by what is built"),
    ("text run by `__builtins__`, `runpy`, the lab's own loader, TVM's parser", "test_likeness.py", "what is neither the language nor a harmless module: compared by what is built"),
    ("text written into a file, by `open` or by NumPy", "test_likeness.py", "compared by what is built"),
    ("another text for the steps that follow, with the file's old date", "test_worker.py", "a new child: the time of a change cannot be set back"),
    ("rights taken from the file for the steps that follow", "test_worker.py", "a new child"),
    ("pipes of the parent set not to wait, or to send signals", "test_worker.py", "costs its own step"),
    ("the memory of the parent overwritten", "test_worker.py", "costs its own step"),
    ("the number or the address of a student of the roster as the name of a hand-in", "test_ledger.py", "not in the roster: no platform writes it over the student's row"),
    ("a hand-in called `Points Possible`, by which Canvas sets the maxima of a class", "test_ledger.py", "is a name"),
    ("the name of another in `./lab handin --student`, for the board", "test_ledger.py", "the board shows nicknames of the roster, or names of submissions"),
    ("handed in early, for days that are less than none", "test_ledger.py", "no more than all points"),
    ("a message with lines like the grader's own", "test_class.py", "its lines stand further right"),
    ("a link to itself, a folder without rights, a link too long: what cannot be looked at", "test_handins.py", "is named, the class goes on"),
    ("handing in again, past a penalty for the attempt before", "test_ledger.py", "the line of adjust.csv that changes nothing is told"),
    ("a time that is too good to be one, for the first place of the board", "test_grading_speed.py", "is not written down"),
    ("several hand-ins under one nickname of the board", "test_ledger.py", "one line, the best"),
    ("a short secret or the shipped salt, found from the sizes that are told", "test_hidden.py", "refused, and told where points are given"),
    ("state declared behind a brace, a clock behind a carriage return", "test_grading.py", "refused from its PTX"),
    ("a technique that races, where the number of the builder's process says that the size is the drawn one", "test_judging.py", "clusters of that run are checked, too"),
    ("printf of strings of strings: gigabytes of the grader's memory, and right", "test_calls.py", "4 KiB of a line are kept"),
    ("a format that asks for more than it was given, so that the run breaks off and is never graded", "test_calls.py", "zeros"),
    ("a mistake of the simulator met on purpose, for another word than wrong", "test_unfinished.py, test_faults.py", "not graded, in the same words whatever it was"),
    ("a name for a value between the lines of a copy, `Tx.meta_var(0)`", "test_likeness.py", "listed as alike: left out of both texts"),
    ("a method of what a function of Python gives between the lines of a copy", "test_likeness.py", "listed as alike: left out of both texts"),
    ("`if True:` around the lines of a copy", "test_likeness.py", "listed as alike: taken for what stands in it"),
    ("a name of a million letters, told of thousands of lines: gigabytes of the grader's memory", "test_judging.py", "a run leaves some findings behind, none of them long"),
    ("D read by an address of another space, ld.param or ld.const, so that less work once it is there is not looked for", "test_reads.py", "in doubt a kernel can read D"),
    ("escapes of a terminal in the name of a folder inside a hand-in", "test_unusual_handins.py", "are written as text"),
    ("megabytes of PTX from a short text, read for minutes and kept for each size", "test_worker.py", "8 MiB at most"),
    ("every function of TVM replaced by another (`register_global_func`) for the steps that follow", "test_worker.py", "each draft is made in a process of its own"),
    ("importers, audit hooks, profilers, hooks of fork and of exit for the steps that follow", "test_worker.py", "each draft is made in a process of its own"),
    ("every descriptor replaced, so that the answer goes nowhere", "test_worker.py", "costs its own step"),
    ("a copy that leads the board, although adjust.csv took its points", "test_ledger.py", "the board counts adjust.csv"),
    ("calls of a function that does nothing between the lines of a copy", "test_likeness.py", "listed as alike: by what is built, from step 4 on"),
    ("a loader that waits for write-back, or for each load, from the third tile or the 23rd K tile on", "test_shows.py", "one cluster of a larger launch runs alone, and its worst tile counts"),
    ("text run by `exec`, each line in another place than in the copied file", "test_class.py", "marks of lines are left out of what is compared"),
    ("a technique that races, in the large launch of which one cluster is run alone", "test_judging.py", "that cluster is checked for races, too"),
    ("a kernel that leaves tiles out where one cluster is run alone, so that what goes wrong in the third is not seen", "test_shows.py", "a cluster that has less than its share of D shows nothing; others are tried"),
    ("K tiles of zeros, loaded beyond the edge between those of the product: their MMAs hide what waits", "test_shows.py", "an MMA takes time in the replay for rows and columns that are not zeros"),
    ("sums of zeros in the rest of tensor memory, read once, so that tiles look large and half of the CTAs may idle", "test_flow.py, test_shows.py", "a tile has as many numbers as sums of useful products are held at once"),
    ("numbers that hardly meet, each of A beside a zero of B: MMAs that take time and weigh nothing", "test_flow.py", "an MMA takes time in the replay for multiply-adds that are not of zeros"),
    ("products of numbers too small for float16, as of bfloat16, which weighed nothing", "test_flow.py", "they weigh something"),
    ("an MMA of a sparse A, which the grader could not weigh: its process died, the step was never graded", "test_flow.py", "is none of those that D is made of"),
    ("step 9 with two MMA warps, half of its columns each, in the place of step 10", "test_shows.py", "rows of A of their own, or a loaded byte serves more products than in step 9"),
    ("arguments dressed up, `x + 0`, `(x,)[0]`, `x if True else 0`, `(lambda: x)()`, `abs(x)`, all over a copy", "test_likeness.py", "listed as alike: taken for x"),
    ("a name that differs from another's by case alone, on a disk that takes both for one", "test_unusual_handins.py", "each has a folder of its own"),
)  # fmt: skip


def page() -> str:
    total = sum(len(rows) for *_, rows in KINDS)
    lines = [
        "# Attacks on grading",
        "",
        f"{total} attacks that tests try, and {len(APART)} families that have tests of their own. Written by",
        "`python instructor/bench/attacks.py`; `./lab test --all` tries all of them.",
        "",
        "| family | what is done about it | tried by |",
        "|---|---|---|",
        *(f"| {what} | {here} | `{test}` |" for what, test, here in APART),
    ]
    for file, test, naive, here, rows in KINDS:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(k for _, k in rows).items()))
        lines += [
            "",
            f"## {file}: {len(rows)}",
            "",
            f"Tried by `{test}`. A naive grader {naive}. Here: {here}.",
        ]
        lines += ["", f"Kinds: {kinds}.", "", "| attack | after |", "|---|---|", *_rows(rows)]
    return "\n".join(lines) + "\n"


def _rows(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| {name} | {kind} |" for name, kind in rows]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
