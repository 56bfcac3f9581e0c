"""Lines for the user on stderr while a program runs: one for each launch, its findings, and a summary."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable

from ptxsim.report.findings import told_once
from ptxsim.report.names import readable

WORST = ("error", "incomplete", "review", "clean", "not checked")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


AFTER = 10.0  # seconds until the first line that says that a launch is still running


@contextlib.contextmanager
def patience(what: str):
    """Reports after 10 s that `what` is still running, and again whenever the time has doubled."""
    start = time.monotonic()

    def tell(*_) -> None:
        spent = time.monotonic() - start
        os.write(2, f"ptxsim: {what}: {spent:.0f} s so far\n".encode())  # not print, which it may interrupt
        signal.setitimer(signal.ITIMER_REAL, max(spent, AFTER))

    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, AFTER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def worst(verdicts: Iterable[str]) -> str:
    """The worst of several verdicts; "clean" if there are none."""
    return min(verdicts, key=WORST.index, default="clean")


def short(name: str, most: int = 60) -> str:
    """The readable name without parameters and return type, shortened to `most` characters."""
    text = readable(name)
    head = _without_parameters(text)
    return head if len(head) <= most else head[: most - 2] + ".."


def _without_parameters(text: str) -> str:
    depth = 0
    for at in range(len(text) - 1, -1, -1):  # finds the parenthesis that opens the last group at depth 0
        depth += (text[at] == ")") - (text[at] == "(")
        if text[at] == "(" and depth == 0:
            text = text[:at]
            break
    return text.removeprefix("void ").strip()


def shape(extents: tuple[int, int, int]) -> str:
    """Extents as text: `16x4` for (16, 4, 1)."""
    used = list(extents)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return "x".join(map(str, used))


def amount(count: float) -> str:
    """A count as text: `1.2 M` for 1_234_567."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count:.0f}"


def announce_compilation() -> None:
    """Compiles the simulator, with a message and a progress bar, if this computer has not done so yet."""
    from ptxsim.jit.code_cache import ANNOUNCED, first_run, is_cold

    if is_cold():
        say(f"ptxsim: {first_run()}")
        os.environ[ANNOUNCED] = "1"
        from ptxsim.driver.first_time import compile_with_bar

        compile_with_bar()


class Teller:
    """Prints lines for the user while a program runs. quiet: only findings and the summary."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.shown: dict[str, int] = {}  # kernel, kind and message of a finding -> how often it occurred

    def told(self, record) -> None:
        """Prints the outcome of a launch that has ended; each finding only the first time it occurs."""
        fresh = [f for f in record.findings if self._is_new(record, f)]
        if not self.quiet or fresh:
            say(line_of(record))
        for text in told_once(fresh):
            say("  " + text.replace("\n", "\n  "))
        if not self.quiet:
            for note in record.notes:
                say(f"  note: {note}")

    def _is_new(self, record, finding) -> bool:
        key = f"{record.kernel} {finding.kind} {finding.where.get('ptx_line')} {finding.message[:60]}"
        self.shown[key] = self.shown.get(key, 0) + 1
        return self.shown[key] == 1

    def summary(self, records: list, chip: str, end: str = "") -> None:
        """Prints the outcome of all launches; `end`: text appended on how the program ended."""
        if not records:
            say("ptxsim: the program launched no kernel")
            return
        counts = Counter(record.verdict for record in records)
        kernels = len({record.kernel for record in records})
        instructions = sum(record.stats.get("warp_instructions", 0) for record in records)
        seconds = sum(record.stats.get("seconds", 0) for record in records)
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        launches = f"{len(records)} launch{'es' if len(records) > 1 else ''}"
        which = f"{launches} of {kernels} kernel{'s' if kernels > 1 else ''}"
        work = f"{amount(instructions)} warp instructions in {seconds:.1f} s"
        say(f"ptxsim: {which} as on an {chip.partition(' (')[0]}: {told}; {work}{end}")


def line_of(record) -> str:
    """The line of a launch: `ptxsim: #3 gemm<128> <<<16x16, 256>>> clean, 1.2 M warp instructions, 0.8 s`."""
    cluster = f", cluster {shape(record.cluster)}" if max(record.cluster) > 1 else ""
    numbers, stats = f", as #{record.same_as}: same memory" if record.same_as else "", record.stats
    if stats:
        numbers = f", {amount(stats['warp_instructions'])} warp instructions, {stats['seconds']:.1f} s"
    launch = f"{launch_text(record.kernel, record.grid, record.block)}{cluster}"
    return f"ptxsim: #{record.number} {launch} {record.verdict}{numbers}"


def launch_text(kernel: str, grid: tuple[int, int, int], block: tuple[int, int, int]) -> str:
    """A launch as text: `gemm<128> <<<16x16, 256>>>`, or only the name if the kernel was refused."""
    return short(kernel) if not any(grid) else f"{short(kernel)} <<<{shape(grid)}, {shape(block)}>>>"
