"""Compares ptxsim's verdict on a program with the truth.

`check` returns a list of disagreements, each a (class, detail):
  false error      no schedule of the program does anything wrong, but ptxsim says `error`
  false review     nothing needs a review, but ptxsim says `review`
  false clean      every schedule is wrong, but ptxsim says `clean` or `review` in an order
  unseen           some schedule is wrong, but ptxsim says so in no order (not a false verdict of a run);
                   separate: a review says that it is luck which arrivals make a phase
  missing review   every schedule lacks a fence, but ptxsim says `clean`
  wrong pair       a race, or a waiting event, that is not in the truth
  wrong kind       an error of a kind that nothing in the program explains
                   (these two only if all schedules show the same; else the truth is a sample)
  results differ   clean in every order, but memory differs (between orders, or with and without checks)
  no verdict       incomplete, an exception, or no end
"""

from __future__ import annotations

import re
import signal

import numpy as np

import ptxsim
from research.truth.emit import ptx_of
from research.truth.events import RESULTS
from research.truth.execute import Undefined
from research.truth.generate import program_of
from research.truth.judge import Truth, truth_of
from research.truth.model import FLAGS, SLOT, Program

ORDERS = ("program", "adverse")
SEEDED = 4  # one program in so many also runs under a random order
OWN = {900000, 900001}  # marks of the code before and after the events
DEEPER = (5, 40, 300, 2000)  # factors of more schedules before a disagreement counts
SECONDS = 60  # a run that takes longer has no verdict
UNDEFINED = "without meaning: "
_LUCK = "is luck"
_LINE = re.compile(r"\bline (\d+)\b")

# kind of a finding -> the facts of the truth that explain it
EXPLAINS = {
    "collective": {"stuck", "races"},  # groups of warps that share a barrier
    "race": {"races", "pending", "stuck", "open"},
    "proxy-fence": {"fences", "races"},
    "deadlock": {"stuck"},
    "async-pending": {"pending", "races", "stuck"},
    "uninitialized": {"races", "pending", "unset", "stuck"},
    "tmem-alloc": {"races", "pending", "stuck"},  # work that is still under way when columns are freed
    "mbarrier": {"stuck", "races", "half", "pending"},
    "tx-count": {"stuck", "half"},
}


class TooLong(Exception):
    pass


def _alarm(*_):
    raise TooLong


def run_ptxsim(program: Program) -> dict:
    """order -> (Result, memory after the run, memory after a run without checks)."""
    orders = ORDERS if program.seed % SEEDED else (*ORDERS, 1 + program.seed % 1000)
    module = ptxsim.load(ptx_of(program))
    shape = {"grid": program.ctas, "cluster": program.ctas, "block": 32 * program.warps}
    found = {}
    for order in orders:
        result, memory = _launch(module, shape, order, checks=True)
        plain = _launch(module, shape, order, checks=False)[1] if result.verdict == "clean" else memory
        found[order] = result, memory, plain
    return found


def _launch(module, shape: dict, order: str | int, checks: bool) -> tuple:
    arrays = fresh_arrays()
    args = [*arrays, *maps_of(arrays[0])]
    result = module.launch("k", **shape, args=args, order=order, jobs=1, checks=checks)
    return result, np.concatenate(arrays[1:])


def maps_of(numbers: np.ndarray) -> list:
    """Tensor maps of the input, with boxes of one and two slots."""
    return [ptxsim.TensorMap(numbers, box=(words,), swizzle=0) for words in (SLOT, 2 * SLOT)]


def fresh_arrays() -> tuple:
    """(input, output with its global slots, flags)."""
    return (
        np.arange(1, 4097, dtype=np.uint32),
        np.zeros(RESULTS + 128 * 32, np.uint32),
        np.zeros(FLAGS * 16, np.uint32),
    )


def examine(seed: int) -> tuple[int, str, list[tuple[str, str]]]:
    """(seed, the program's state, disagreements that more schedules do not explain)."""
    program = program_of(seed)
    try:
        truth = truth_of(program)
        found = check(program, truth, deeper=DEEPER)
    except Undefined as why:
        return seed, f"{UNDEFINED}{why}", []
    state = "wrong" if truth.must else "wrong in some schedules" if truth.may else "right"
    return seed, "to review" if state == "right" and truth.review else state, found


def check(program: Program, truth: Truth | None = None, deeper=DEEPER) -> list[tuple[str, str]]:
    """Every disagreement that remains when more schedules are tried. Raises Undefined."""
    truth = truth or truth_of(program)
    runs = _in_time(program)
    if isinstance(runs, str):
        return [("no verdict", runs)]
    found = judge_runs(truth, runs)
    for rounds in deeper:
        found = found and judge_runs(truth_of(program, rounds), runs)
    return found


def _in_time(program: Program) -> dict | str:
    """The runs, or the reason why there is no verdict."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    try:
        return run_ptxsim(program)
    except TooLong:
        return f"after {SECONDS} s"
    except Exception as error:  # any exception means no verdict
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.alarm(0)


def judge_runs(truth: Truth, runs: dict) -> list[tuple[str, str]]:
    found = []
    verdicts = {order: result.verdict for order, (result, _, _) in runs.items()}
    if "incomplete" in verdicts.values():
        found.append(("no verdict", "incomplete"))
    for order, (result, _, _) in runs.items():
        found += _of_one_run(truth, order, result)
    wrong = [o for o, v in verdicts.items() if v == "error"]
    if truth.may and not truth.must and not wrong:
        told = any(_LUCK in f.message for result, _, _ in runs.values() for f in result.findings)
        found.append(("unseen, a review says luck" if told else "unseen", _kinds(truth)))
    if set(verdicts.values()) == {"clean"} and _differ(runs, across=not truth.elect):
        found.append(("results differ", ""))
    return sorted(set(found))


def _differ(runs: dict, across: bool) -> bool:
    """Whether memory differs between runs. across: also between orders; otherwise the lane that an order
    elects is its choice, and a checked run is compared only with the unchecked one of its order.
    """
    first = next(memory for _, memory, _ in runs.values())
    return any(
        (m != (first if across else own)).any() for _, own, plain in runs.values() for m in (own, plain)
    )


def _of_one_run(truth: Truth, order, result) -> list[tuple[str, str]]:
    found = []
    text = str(result.findings[0]).split("\n")[0][:160] if result.findings else ""
    left = {"tx-count", "mbarrier"} if any(f.half for f in truth.runs) else set()
    silent = _only(
        result, left | ({"race"} if truth.some("open") else set())
    )  # the truth says nothing about these
    if result.verdict == "error" and not truth.may and not silent:
        found.append(("false error", f"{order}: {text}"))
    elif result.verdict == "review" and not truth.may and not truth.review:
        if not silent:
            found.append(("false review", f"{order}: {text}"))
    elif result.verdict in ("clean", "review") and truth.must:
        found.append(("false clean", f"{order}: {_kinds(truth)}"))
    elif result.verdict == "clean" and all(f.odd for f in truth.runs) and not truth.may:
        found.append(("missing review", f"{order}"))
    if truth.may:
        found += [x for f in result.findings for x in _explained(truth, f)]
    return found


def _only(result, kinds: set) -> bool:
    return {f.kind for f in result.findings} <= kinds


def _kinds(truth: Truth) -> str:
    return " ".join(sorted(truth.kinds()))


def _explained(truth: Truth, finding) -> list[tuple[str, str]]:
    """Why the truth does not explain this error; nothing if schedules differ (then it is a sample)."""
    if finding.severity != "error" or truth.luck:
        return []
    reasons = truth.kinds() | {n for n in ("half", "open") if any(getattr(f, n) for f in truth.runs)}
    text = str(finding).split("\n")[0][:160]
    if not EXPLAINS.get(finding.kind, set()) & reasons:
        return [("wrong kind", f"{finding.kind}, truth {_kinds(truth)}: {text}")]
    if finding.kind in ("race", "proxy-fence") and "second" in finding.evidence:
        accesses = finding.message.split(" are not ordered")[0].split(": no ")[0]
        lines = sorted(int(x) for x in _LINE.findall(accesses))
        known = set().union(*(truth.some(n) for n in ("races", "fences", "late", "tcgen05", "open")))
        if len(lines) == 2 and tuple(lines) not in known and not OWN & set(lines):
            return [("wrong pair", f"{finding.kind} {lines}, truth {sorted(known)[:4]}: {text}")]
    if finding.kind == "deadlock" and not truth.elect:
        waits = {w["line"] for w in finding.evidence.get("waits", [])} - OWN
        if not waits <= truth.stuck():
            return [("wrong pair", f"deadlock waits {sorted(waits)}, truth {sorted(truth.stuck())}")]
    return []
