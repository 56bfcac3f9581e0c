"""Tries small edits of a step that fails, to find those that make all of its runs right and clean.

The edits come from tirxlab.explain.repairs, likeliest first. Each is built and run like the student's own
text, first where that failed; an edit that passes there must pass all other runs, too. Two edits are tried at
a time, for half a minute. A repair that is found replaces the first finding's hint.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from tirxlab.cli.common import notes, output
from tirxlab.cli.runs import Job, Outcome, Runner
from tirxlab.explain.repairs import Edit, Repair, alone, ranked, told
from tirxlab.sandbox.builder import Built, kernel_of
from tirxlab.steps import StepError, read_text

SECONDS = 40.0  # of one lane's work (clock.py), after which it begins no further trial
WALL = 45.0  # of wall time, after which all trials end; for a machine that is busy with other work
LANES = 2
RUN = 10.0  # a run that takes longer counts as no repair
LEAST_RUN = 2.0
ENOUGH = 20  # with this many kernels run in vain, the hint is in doubt
SLOWER = 3.0  # a trial may run this many times as long as the failing run
MOVED = 4  # a move counts as at most this many words
MANY = 4  # a new value for a constant used in this many places is not a local edit
_WORD = re.compile(r"\w+|[-+*/%^<>=!]+")
_CONSTANT = re.compile(r"[ \t]*([A-Z][A-Z0-9_]*)[ \t]*=(?!=)")
LATER = 10  # this many places further down the ranking weigh as much as one word more
MORE = 6  # how many edits are tried after the first that passes: a smaller one may pass, too


@dataclass
class Trials:
    """The trials of one step. `failed`: the job that showed the failure; `jobs`: all of the step's runs."""

    failed: Job
    jobs: list[Job]
    before: Outcome
    wall: float = WALL
    tried: int = 0  # edits that were built
    ran: int = 0  # of these, kernels that differ from all earlier ones
    work: float = 0.0  # seconds of all processes
    passed: list[tuple[int, Edit, bool]] = field(default_factory=list)  # True: a review remains

    def __post_init__(self):
        self.text = read_text(self.failed.kernels)
        self.kinds = {finding["kind"] for finding in self.before.findings if finding["severity"] == "review"}
        self.lock, self.over = threading.Lock(), False
        self.left: int | None = None  # edits to try, once one has passed
        self.seconds = min(RUN, max(LEAST_RUN, SLOWER * self.before.seconds))
        self.kernels: set[str] = set()

    def run(self, first: Runner) -> list[Repair]:
        """Repairs that pass, best first. `first`: a warm runner, whose processes end with this call."""
        self.end = time.monotonic() + self.wall
        self._know(first.made.get((self.failed.step, self.failed.size)))
        edits = ranked(self.text, self.failed.step, self.before.findings, self.before.message)
        self.todo = enumerate(edits)
        runners = [first, *(Runner(self.failed.kernels) for _ in range(LANES - 1))]
        lanes = [threading.Thread(target=self._lane, args=(runner,), daemon=True) for runner in runners]
        try:
            for lane in lanes:
                lane.start()
            while any(lane.is_alive() for lane in lanes) and time.monotonic() < self.end:
                time.sleep(0.05)
        finally:
            self.over = True
            self.work = sum(work(runner) for runner in runners)
            for runner in runners:
                runner.__exit__()
        best = sorted(self.passed, key=lambda one: (one[2], size(one[1], self.text) + one[0] / LATER))
        return [Repair.of(edit, self.text, review) for _, edit, review in best]

    def _know(self, built: Built | None) -> None:
        if built is not None and built.artifact is not None:
            self.kernels.add(kernel_of(built.artifact))

    def _lane(self, runner: Runner) -> None:
        """Tries one edit after another, in the processes of one runner."""
        runner.pool.seconds = self.seconds
        try:
            runner.builder.start()
            begun = work(runner)
            while work(runner) - begun < SECONDS and (one := self._next()):
                number, edit, text = one
                runner.renew(text)
                review = self._review(runner)
                if review is not None and not self.over:
                    self._pass(number, edit, review)
        except Exception:
            if not self.over:  # else the error comes from ending the runner's processes
                raise

    def _pass(self, number: int, edit: Edit, review: bool) -> None:
        with self.lock:
            self.passed.append((number, edit, review))
            self.left = MORE if self.left is None else self.left

    def _next(self) -> tuple[int, Edit, str] | None:
        """(number, edit, text with it) of the next edit that parses; None if enough were tried.

        One lane at a time: CPython 3.11 counts the depth of a syntax tree for all threads together, so one of
        two threads that parse at the same time fails.
        """
        with self.lock:
            while not self.over:
                number, edit = next(self.todo, (0, None))
                if edit is None or self.left == 0:
                    return None
                self.left = None if self.left is None else self.left - 1
                with contextlib.suppress(SyntaxError):
                    made = alone(edit.applied(self.text), self.failed.step)
                    self.tried += 1
                    return number, edit, made
        return None

    def _runs(self) -> Iterator[Job]:
        yield self.failed
        yield from (job for job in self.jobs if job != self.failed)

    def _review(self, runner: Runner) -> bool | None:
        """Whether a review remains with every run right; None if one is wrong or has a new kind of review."""
        left = False
        for job in self._runs():
            outcome = self._outcome(runner, job)
            kinds = {finding["kind"] for finding in outcome.findings} if outcome else set()
            if outcome is None or not outcome.passed or not kinds <= self.kinds:
                return None
            left = left or bool(kinds)
        return left

    def _outcome(self, runner: Runner, job: Job) -> Outcome | None:
        """The outcome of a run, None if there is none. A kernel already seen is built no further than PTX."""
        if self.over:
            return None
        runner.builder.tried = self.kernels if job is self.failed else None
        try:
            ((_, outcome),) = runner.run([job])
        except (StepError, MemoryError):
            return None
        self.ran += job is self.failed and outcome.verdict != "not built"
        return outcome


def size(edit: Edit, text: str) -> int:
    """How many words an edit takes out and puts in; at most MOVED for a statement that only moves. A new
    value for a constant used in many places counts as an edit of each: a shorter ring hides what is wrong in
    one of its rounds.
    """
    words = [
        len(_WORD.findall(text[start:end])) + len(_WORD.findall(new)) for start, end, new in edit.splices
    ]
    if edit.family == "moved":
        return min(MOVED, sum(words))
    return sum(words) + sum(_uses_of_constant(text, start) for start, _, _ in edit.splices)


def _uses_of_constant(text: str, at: int) -> int:
    """How many other places of the function use the constant set in the line at `at`; 0 if below MANY."""
    line = _CONSTANT.match(text, text.rfind("\n", 0, at) + 1)
    if line is None or at < line.end():
        return 0
    begin, end = text.rfind("\ndef ", 0, at), text.find("\ndef ", at)
    uses = len(re.findall(rf"\b{line[1]}\b", text[max(0, begin) : end if end >= 0 else None])) - 1
    return uses if uses >= MANY else 0


def work(runner: Runner) -> float:
    """Seconds of work of a runner's processes."""
    return runner.builder.spent + runner.pool.spent


def may_help(last: Outcome) -> bool:
    """Whether trials can help: the run failed, on the simulator, and not because it was not built."""
    return not last.passed and last.device == "sim" and last.verdict not in ("not built", "not checked")


def without_hint(last: Outcome) -> str:
    """Removes the hint from a run's message and returns it; it, or a repair, is printed after the trials."""
    hint = last.findings[0]["hint"] if last.findings else ""
    line = f"  hint: {hint}"
    lines = last.message.split("\n")
    if not hint or line not in lines:
        return ""
    lines.remove(line)
    last.message = "\n".join(lines)
    return line


def explain(runner: Runner, jobs: list[Job], done: list[Outcome], hint: str, quiet: bool) -> None:
    """Tries repairs of the last run and prints them, else the hint. Ctrl-C ends only the trials."""
    last, found, ran = done[-1], [], 0
    if not quiet:
        notes().print(f"trying small changes of step {last.step} (45 s at most, Ctrl-C ends it) ..")
    trials = Trials(jobs[len(done) - 1], jobs, last)
    try:
        found, ran = trials.run(runner), trials.ran
    except KeyboardInterrupt:
        notes().print("stopped")
    last.repairs = [asdict(repair) for repair in found]
    said = told(found) if found else unproven(hint, ran)
    if said and last.findings:
        last.findings[0]["hint"] = said.removeprefix("hint: ")
    last.message = "\n".join(
        filter(None, [last.message, *(f"  {line}" for line in said.split("\n") if line)])
    )
    if said and not quiet:
        output().print("\n".join(f"    {line}" for line in said.split("\n")), markup=False)


def unproven(hint: str, ran: int) -> str:
    """The hint, in doubt if many trials failed; it may still be right: a repair may take several edits."""
    said = hint.strip()
    if not said or ran < ENOUGH:
        return said
    return f"{said}\n(none of the {ran} small changes tried makes this step right; it may take more than one)"
