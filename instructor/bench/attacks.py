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

from instructor.exploits.escapes import ESCAPES  # noqa: E402
from instructor.exploits.exploit import EXPLOITS  # noqa: E402
from instructor.exploits.handins import HANDINS  # noqa: E402
from instructor.exploits.leaks import LEAKS  # noqa: E402

PAGE = ROOT / "instructor/exploits/attacks.md"
KINDS = (  # file, test, what a naive grader does, what happens here
    (
        "exploits.toml",
        "test_exploits.py",
        "gives what the exploit wants, in the same test",
        "no points (`work`: only those of a result; `speed`: none for speed), nothing shown, the next step is graded",
        [(one.name, one.gain) for one in EXPLOITS],
    ),
    (
        "escapes.py",
        "test_escapes.py",
        "runs it as it is, and it succeeds, in the same test",
        "no level of confinement lets it succeed",
        [(one.name, one.gain) for one in ESCAPES],
    ),
    (
        "handins.py",
        "test_handins.py",
        "opens or compares it in its own process; if the kind is `time` or an error, the same file's test shows that",
        "harms only itself, and is named",
        [(one.name, f"{one.where}: {one.hurts or 'grade'}") for one in HANDINS],
    ),
    (
        "leaks.py",
        "test_leaks.py",
        "prints what it is told (not run)",
        "one bit per step: whether it passes",
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
# Attacks with tests of their own: they need a stand-in for a GPU, or two submissions.
APART = (
    ("cache replay, lazy output on a GPU", "test_grading_speed.py", "D is overwritten before each timed launch, and rows of each D are compared"),
    ("data kept in L2 from launch to launch", "test_grading_speed.py", "`evict_last`, `createpolicy`, `applypriority`: not timed; L2 is flushed"),
    ("D left in shared memory for the next timed launch", "test_grading_speed.py", "a kernel that reads uninitialized memory is not timed"),
    ("D left anywhere by a kernel that can tell a chip from the simulator, as by its addresses", "test_grading_speed.py", "each timed launch multiplies different numbers, and its D is compared"),
    ("no work in every other launch, chosen by the number of polls of a barrier: the last may be right", "test_grading_speed.py", "the same: rows of each launch's D are compared"),
    ("D left in local memory, tensor memory or registers for the next launch", "test_grading_speed.py", "the same; registers are followed through the text"),
    ("a time that is too good", "test_grading_speed.py", "below the floor of the chip or of the prediction: the time does not count"),
    ("more or fewer launches than are timed", "test_devices.py", "launches are counted; with another number the time does not count"),
    ("a kernel that starts another one", "test_grading.py", "refused from its PTX"),
    ("an answer left in an input for the next launch", "test_judging.py, test_grading_speed.py", "wrong on the simulator; inputs are restored before each timed launch"),
    ("a copy among any amount of other text", "test_class.py", "listed as alike"),
    ("less work once D is already there", "test_judging.py", "wrong: the whole grid is run again on its own product"),
    ("step 4 handed in as steps 5 to 10", "test_grading.py", "a result whose kernel lacks what the step before demands counts in part"),
    ("CUDA built by `exec` of a copied text", "test_class.py", "listed as alike by the CUDA that is built"),
    ("hidden sizes stored by one step's code, revealed by another's", "test_leaks.py", "hidden sizes are built last, and nothing that the student sees is built in that process"),
    ("a hidden size encoded in how long it takes to build, and read from the clock by code that is built later", "test_leaks.py", "everything that the student sees is built before any hidden size"),
    ("the same by code that is built for the timing on a GPU", "test_grading_speed.py", "its messages are not shown, only that it does not build"),
    ("hidden sizes found as those that are never drawn", "test_grading.py, test_leaks.py", "the draw does not depend on the hidden sizes"),
    ("several limits nearly met, so that the load of the machine decides which comes first", "test_unfinished.py", "one message, and the same limits for what follows, whatever limit is met"),
    ("each build and each run just below its limit", "test_worker.py, test_unfinished.py", "a file has a time limit for all its steps; after that each gets the least"),
    ("a draft of noise, or of a million files", "test_worker.py", "4 MiB at most, checked before it is opened"),
    ("a draft with 60 megabytes of spaces, which compresses to nothing: minutes and gigabytes of the grader's", "test_draft_size.py", "4 MiB of CUDA text at most"),
    ("a name that looks like one that the grader makes", "test_class.py", "distinct names stay distinct"),
    ("combining marks piled up on a letter until they cover the lines above", "test_class.py, test_worker.py", "three at most"),
    ("a name that takes another student's row of the roster", "test_class.py", "a row may omit the ending only if a single file can be meant"),
    ("the name of a student of the roster, for grades and adjustments", "test_ledger.py", "only the roster assigns a submission to a student; others are marked as not in the roster"),
    ("statements that change nothing between the lines of a copy, `x + 0`", "test_class.py", "listed as alike: both texts are compared without them"),
    ("copied code before the first step, called from the steps", "test_likeness.py", "listed as alike: a file is compared from its first line"),
    ("a syntax error and an open quote that hide the copy after them from a reader of tokens", "test_likeness.py", "the text after an error is compared, too"),
    ("`exec` in other letters that Python treats as the same", "test_likeness.py", "names are normalised as Python does; compared by the CUDA that is built"),
    ("text run by `__builtins__`, `runpy`, the lab's own loader, TVM's parser", "test_likeness.py", "anything but the language and harmless modules: compared by the CUDA that is built"),
    ("text written into a file, by `open` or by NumPy", "test_likeness.py", "compared by the CUDA that is built"),
    ("another text for later steps, with the file's old date", "test_worker.py", "a new child: a file's change time cannot be set back"),
    ("permissions removed from the file for later steps", "test_worker.py", "a new child"),
    ("pipes of the parent made non-blocking or signal-driven", "test_worker.py", "harms only its own step"),
    ("the memory of the parent overwritten", "test_worker.py", "harms only its own step"),
    ("the number or the address of a student of the roster as the name of a hand-in", "test_ledger.py", "marked as not in the roster: no platform writes it over the student's row"),
    ("a hand-in called `Points Possible`, the name by which Canvas sets the maxima of a class", "test_ledger.py", "is treated as a name"),
    ("another student's name in `./lab handin --student`, for the board", "test_ledger.py", "the board shows nicknames from the roster, or names of submissions"),
    ("an early hand-in, for negative late days", "test_ledger.py", "never more than all points"),
    ("a message with lines like the grader's own", "test_class.py", "its lines are indented"),
    ("paths that cannot be read: a link to itself, a folder without permissions, an overlong link", "test_handins.py", "is named; the class is still graded"),
    ("handing in again to escape a penalty for the attempt before", "test_ledger.py", "a line of adjust.csv that changes nothing is reported"),
    ("an impossible time, for the first place on the board", "test_grading_speed.py", "is not recorded"),
    ("several hand-ins under one nickname on the board", "test_ledger.py", "one line, the best"),
    ("a short secret or the shipped salt, found from the sizes that students see", "test_hidden.py", "refused, and reported when grading"),
    ("state declared after a brace, a clock after a carriage return", "test_grading.py", "refused from its PTX"),
    ("a technique that races, used only when the builder's process id shows that the size is the drawn one", "test_judging.py", "clusters of that run are checked, too"),
    ("nested printf strings in a right kernel: gigabytes of the grader's memory", "test_calls.py", "4 KiB of a line are kept"),
    ("a printf format with too few arguments, so that the run aborts and is never graded", "test_calls.py", "missing arguments are zeros"),
    ("a fault of the simulator triggered on purpose, for another verdict than wrong", "test_unfinished.py, test_faults.py", "not graded, in the same words whatever it was"),
    ("a name for a value between the lines of a copy, `Tx.meta_var(0)`", "test_likeness.py", "listed as alike: left out of both texts"),
    ("a method of what a Python builtin returns, between the lines of a copy", "test_likeness.py", "listed as alike: left out of both texts"),
    ("`if True:` around the lines of a copy", "test_likeness.py", "listed as alike: replaced by its body"),
    ("a name of a million letters in the findings of thousands of lines: gigabytes of the grader's memory", "test_judging.py", "a run keeps a limited number of findings, none of them long"),
    ("D read through another state space, ld.param or ld.const, so that the test for skipped work is not made", "test_reads.py", "in doubt a kernel can read D"),
    ("terminal escapes in the name of a folder inside a hand-in", "test_unusual_handins.py", "are written as text"),
    ("megabytes of PTX from a short text, parsed for minutes and kept for each size", "test_worker.py", "8 MiB at most"),
    ("every function of TVM replaced (`register_global_func`) for later steps", "test_worker.py", "each draft is made in a process of its own"),
    ("importers, audit hooks, profilers, fork and exit hooks for later steps", "test_worker.py", "each draft is made in a process of its own"),
    ("every descriptor replaced, so that the answer goes nowhere", "test_worker.py", "harms only its own step"),
    ("a copy that leads the board, although adjust.csv took its points", "test_ledger.py", "the board counts adjust.csv"),
    ("calls of a function that does nothing between the lines of a copy", "test_likeness.py", "listed as alike: by the CUDA that is built, from step 4 on"),
    ("a loader that waits for write-back, or for each load, from the third tile or the 23rd K tile on", "test_shows.py", "one cluster of a larger launch runs alone, and its worst tile counts"),
    ("text run by `exec`, each line at another place than in the copied file", "test_class.py", "line marks are left out of the comparison"),
    ("a technique that races in the large launch, of which only one cluster is run", "test_judging.py", "that cluster is checked for races, too"),
    ("tiles left out where one cluster is run alone, so that a fault in the third tile is not seen", "test_shows.py", "a cluster with less than its share of D does not count; others are tried"),
    ("K tiles of zeros, loaded from beyond the edge, between those of the product: their MMAs hide waiting", "test_shows.py", "in the replay, rows and columns of zeros take no time"),
    ("sums of zeros in the rest of tensor memory, read once, so that tiles look large and half of the CTAs may idle", "test_flow.py, test_shows.py", "the size of a tile is the number of sums of useful products held at once"),
    ("sparse operands, each number of A against a zero of B: MMAs that take time and weigh nothing", "test_flow.py", "in the replay, multiply-adds of zeros take no time"),
    ("products of numbers too small for float16, as of bfloat16, which would weigh nothing", "test_flow.py", "they have a weight"),
    ("an MMA with a sparse A, which the grader could not weigh: its process died, the step was never graded", "test_flow.py", "never counts as a part of D"),
    ("step 9 with two MMA warps, each with half of the columns, handed in as step 10", "test_shows.py", "each needs rows of A of its own, unless a loaded byte serves more products than in step 9"),
    ("arguments disguised as `x + 0`, `(x,)[0]`, `x if True else 0`, `(lambda: x)()`, `abs(x)`, all over a copy", "test_likeness.py", "listed as alike: reduced to x"),
    ("a name that differs from another only by case, on a disk that ignores case", "test_unusual_handins.py", "each has a folder of its own"),
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
        lines += ["", f"Kinds: {kinds}.", "", "| attack | aims at |", "|---|---|", *_rows(rows)]
    return "\n".join(lines) + "\n"


def _rows(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| {name} | {kind} |" for name, kind in rows]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
