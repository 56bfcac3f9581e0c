"""The findings of a run: `Finding`, and the Reporter that collects them (each once, with a count)."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ptxsim.causes.cause import Cause
from ptxsim.causes.hints import Hints
from ptxsim.causes.ranking import rank
from ptxsim.frontend.ast import Instr
from ptxsim.isa.address_map import SHARED_START
from ptxsim.report.bad_access import told_fault
from ptxsim.report.merging import SEVERITIES, Appeared
from ptxsim.report.names import brief, brief_text, variable
from ptxsim.report.sources import Sources, place_text, told_place

if TYPE_CHECKING:  # avoids numpy, which a command that only shows findings need not load
    from ptxsim.events.views import Cluster, Split

KINDS = (
    "collective",
    "illegal",
    "mbarrier",
    "tx-count",
    "descriptor",
    "misaligned",
    "out-of-bounds",
    "cluster",
    "tmem-alloc",
    "uninitialized",
    "deadlock",
    "proxy-fence",
    "race",
    "async-pending",
    "tmem-leak",
    "unsupported",
)
_OF_ACCESSES = ("misaligned", "out-of-bounds", "uninitialized", "proxy-fence", "race")  # counted in accesses
CLEAN = (  # what the verdict "clean" promises, in one sentence
    "no race, missing edge or deadlock in any interleaving that program order and synchronisation allow, "
    "for the control flow that was seen"
)


def _is_worse(one: str, other: str) -> bool:
    return SEVERITIES.index(one) < SEVERITIES.index(other)


def times_text(kind: str, count: int) -> str:
    """` (64 accesses)`: how often a finding happened; empty for once."""
    return f" ({count} {'accesses' if kind in _OF_ACCESSES else 'times'})" if count > 1 else ""


@dataclass
class Finding:
    kind: str  # one of KINDS
    severity: str  # "error" | "review" | "incomplete"
    message: str  # what happened, with the arithmetic
    hint: str = ""  # what to do, in the terms of the kernel's language
    where: dict = field(default_factory=dict)  # cta, warp, lanes, line (of the source), ptx_line, ptx
    evidence: dict = field(default_factory=dict)  # the numbers that the message is based on
    count: int = 1  # how often it happened

    def __str__(self) -> str:
        times = times_text(self.kind, self.count)
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        sentence, *more = self.message.split("\n", 1)
        told = "\n".join([f"{self.severity}: {self.kind}: {sentence}{times}{self._place()}", *more])
        return told + hint

    def _place(self) -> str:
        where = self.where
        if where.get("source"):
            who = f"CTA {where['cta']}" + (f", warp {where['warp']}" if "warp" in where else "")
            told = where["source_file"], where["source_line"]
            text = f"\n  at {place_text(where['source'], told)}\n  in {brief(where['kernel'])}, {who}"
            return f"{text}\n  PTX line {where['ptx_line']}: {brief_text(where['ptx'])}"
        return f" [line {where['line']}]" if where.get("line") else ""


_NUMBER = re.compile(r"\b(0x[0-9a-f]+|\d+)\b")
_OFFSET = re.compile(r" \+ \d+ B\b")


def told_once(findings: list[Finding]) -> list[str]:
    """The findings' texts; of those of one source line that differ only in numbers, only the first."""
    alike: dict[tuple, list[Finding]] = {}
    for finding in findings:
        at = finding.where.get("source") or finding.where.get("ptx_line")
        words = _NUMBER.sub("#", _OFFSET.sub("", finding.message))
        alike.setdefault((finding.kind, finding.severity, repr(at), words), []).append(finding)
    return [
        f"{first}\n  and {len(more)} more at this line, which differ only in numbers" if more else str(first)
        for first, *more in alike.values()
    ]


class Reporter:
    """Collects the findings of one launch. `names` are (name, dtype, offset, size) of shared buffers."""

    def __init__(
        self, names: list | None = None, memory=None, dynamic_start=0, source="", launch=None, arrays=()
    ):
        """launch: source of the names of static variables and of places in the files that the PTX names.
        arrays: those of these variables that are arrays of barriers, whatever their type."""
        self.by_identity: dict[tuple, Finding] = {}
        self.cluster = 0  # number of the cluster that runs
        self.appeared: dict[tuple, Appeared] = {}
        self.sources = Sources(launch.module) if launch is not None else None
        self.source = source  # name of the source file
        self.hints: Hints = getattr(launch, "hints", None) or Hints()
        self.names = [_name_range(n, dynamic_start) for n in names or []]
        self.dynamic: dict[str, int] = {}  # extern shared variable -> bytes that the launch asks for
        if launch is not None:
            externs = [v.name for v in launch.shared_variables() if v.extern and not names]
            self.dynamic = {variable(name): launch.shared_bytes for name in externs}
            self.names += _static_names(launch, bool(names), arrays)
        self.barrier_names: list[
            tuple[str, str, int, int]
        ] = []  # of barriers inside these (barrier_names.py)
        self.memory = memory
        self.printed: list[str] = []

    @classmethod
    def of(cls, by_identity: dict, appeared: dict | None = None) -> Reporter:
        """A reporter that only carries findings, for another one to `absorb` (merging.py)."""
        reporter = cls()
        reporter.by_identity, reporter.appeared = by_identity, appeared or {}
        return reporter

    def snapshot(self) -> dict[tuple, tuple[Finding, int]]:
        """The findings so far and their counts, for `since` and `restore`."""
        return {identity: (finding, finding.count) for identity, finding in self.by_identity.items()}

    def since(self, snapshot: dict[tuple, tuple[Finding, int]]) -> dict[tuple, Finding]:
        """What was found after `snapshot`, with the counts since then."""
        counts = {identity: count for identity, (_, count) in snapshot.items()}
        later = {i: replace(f, count=f.count - counts.get(i, 0)) for i, f in self.by_identity.items()}
        return {identity: finding for identity, finding in later.items() if finding.count}

    def restore(self, snapshot: dict[tuple, tuple[Finding, int]]) -> None:
        """Forgets what was found since the snapshot."""
        self.by_identity.clear()
        for identity, (finding, count) in snapshot.items():
            finding.count = count
            self.by_identity[identity] = finding

    @property
    def findings(self) -> list[Finding]:
        """Sorted by severity, then causes before consequences (ranking.py), then in order of appearance."""
        return sorted(self.by_identity.values(), key=lambda f: (SEVERITIES.index(f.severity), rank(f)))

    def killed(self) -> bool:
        """Whether a finding ends the launch on any chip: threads that are held after that are no deadlock."""
        return any(f.evidence.get("kills") for f in self.by_identity.values())

    def verdict(self) -> str:
        severities = {f.severity for f in self.by_identity.values()}
        return next((s for s in SEVERITIES if s in severities), "clean")

    def add(
        self,
        kind: str,
        severity: str,
        message: str,
        hint: str | Cause = "",
        split: Split | None = None,
        key=None,
        at: tuple | None = None,
        **evidence,
    ) -> Finding:
        """Records a finding; a repeated one only counts up. hint: what to do, or the cause that says so. at:
        (cluster, rank of the CTA, program row), for findings without a split.

        Findings are merged by (kind, key). Non-tuple keys, and findings without a key, are merged per line of
        the source file and call inlined there (line of the PTX if unknown), whatever numbers a message has.
        """
        where = self.place(split) if split is not None else self.row_place(*at) if at is not None else {}
        line = str(where.get("source", "")) or where.get("line") or -where.get("ptx_line", 0)
        identity = (
            (kind, key)
            if isinstance(key, tuple)
            else (kind, line, _NUMBER.sub("#", message) if key is None else key)
        )
        known = self.by_identity.get(identity)
        if known is not None and not _is_worse(severity, known.severity):
            known.count += 1
            return known
        count = known.count + 1 if known is not None else 1
        if isinstance(hint, Cause):
            evidence["cause"], hint = hint.id, self.hints.hint(hint, kind)
        first = self.cluster if known is None else self.appeared[identity].first
        self.appeared[identity] = Appeared(first, self.cluster)
        self.by_identity[identity] = Finding(kind, severity, message, hint, where, evidence, count)
        return self.by_identity[identity]

    def blame(self, finding: Finding, cause: Cause, message: str) -> None:
        """Rewrites a finding, now that its cause is known."""
        finding.message, finding.hint = message, self.hints.hint(cause, finding.kind)
        finding.evidence["cause"] = cause.id

    def place(self, split: Split, row: int | None = None) -> dict:
        """Where a split is: CTA, warp, lanes, and the lines of the source and of the PTX."""
        cluster = split.cluster
        instr = cluster.program.instrs[split.row if row is None else row]
        place = {
            "cta": cluster.cta_ids[split.cta],
            "rank": split.cta,
            "warp": split.warp % cluster.warps_per_cta,
            "lanes": lanes_text(split.mask),
        }
        return place | self._text_place(cluster, instr)

    def _text_place(self, cluster: Cluster, instr: Instr | None) -> dict:
        """Line and PTX text; if the PTX names files, also the kernel and the places in those files."""
        if instr is None:
            return {}
        place: dict = {"line": instr.src, "ptx_line": instr.line, "ptx": instr.text}
        chain = self.sources.chain(instr) if self.sources is not None else []
        told = told_place(instr, chain)
        if told is not None:
            place |= {"kernel": cluster.program.name, "source_file": told.file, "source_line": told.line}
            place["source"] = [tuple(at) for at in chain]
        return place

    def row_place(self, cluster: Cluster, rank: int, row: int) -> dict:
        """The same for a program row in the CTA of this rank, whichever warp executed it."""
        instr = cluster.program.instrs[row]
        return {"cta": cluster.cta_ids[rank], "rank": rank} | self._text_place(cluster, instr)

    def line_text(self, instr: Instr | None) -> str:
        """`gemm.cu:123`, `line 123` if the file is unknown, else the line of the PTX text."""
        if instr is None:
            return "an unknown line"
        if instr.src is None:
            return f"PTX line {instr.line}"
        file = instr.at.file or self.source
        return f"{file}:{instr.src}" if file else f"line {instr.src}"

    def shared_name(self, offset: int) -> str:
        """`Asmem + 2048 B` or `mma2tma[1]` for a window offset; the bare offset if it has no name.

        Just past a barrier array it is a slot that the array does not have: `mma2tma[2] (it has 2)`.
        """
        held = self._buffer_of(offset)
        if held is not None:
            name, dtype, inside = held[0], held[1], offset - held[2]
            if dtype == "uint64" and inside % 8 == 0:
                return f"{name}[{inside // 8}]"
            return f"{name} + {inside} B" if inside else name
        behind = [
            (offset - start - size, name, (offset - start) // 8, size // 8)
            for name, dtype, start, size in self.all_names()
            if dtype == "uint64" and (offset - start) % 8 == 0 and 0 <= offset - start - size < size
        ]
        if behind:
            _, name, slot, depth = min(behind)
            return f"{name}[{slot}] (it has {depth})"
        at = offset - SHARED_START
        return f"shared memory + {at} B" if at >= 0 else f"{-at} B before shared memory"

    def all_names(self) -> list[tuple[str, str, int, int]]:
        """(name, dtype, start, size) of barriers and buffers, the innermost first."""
        return self.barrier_names + self.names

    def shared_array(self, offset: int) -> str:
        """The array in which `shared_name` names an element."""
        return self.shared_name(offset).partition("[")[0]

    def shared_buffer(self, offset: int) -> str:
        """The same, without the offset within a buffer."""
        return self.shared_array(offset).split(" + ")[0]

    def shared_extent(self, offset: int) -> tuple[int, int]:
        """Start and size in bytes of the buffer that a window offset lies in; (offset, 0) if unknown."""
        held = self._buffer_of(offset)
        return held[2:] if held is not None else (offset, 0)

    def knows(self, offset: int) -> bool:
        """Whether a window offset lies in a named buffer."""
        return self._buffer_of(offset) is not None

    def is_one_word(self, offset: int) -> bool:
        """Whether a window offset lies in a named variable of eight bytes or fewer."""
        return 0 < self.shared_extent(offset)[1] <= 8

    def _buffer_of(self, offset: int) -> tuple[str, str, int, int] | None:
        """(name, dtype, start, size) of the named buffer that a window offset lies in."""
        return next((at for at in self.all_names() if at[2] <= offset < at[2] + at[3]), None)

    def fault(self, where: Split, code: int, address: int, lanes: int, of: int = 0) -> None:
        """Reports an access outside its memory by `lanes` lanes, `of` those that run it (0: not known)."""
        kind, message, hint = told_fault(self, where, code, address, of > lanes)
        self.add(kind, "error", message, hint, where, key=code, lanes=lanes, address=address)

    def outside_shared(self, offset: int) -> str:
        """The name of an offset; past the last buffer, also its distance from that buffer's end."""
        text, last = self.shared_name(offset), self.buffer_before(offset)
        if last is None:
            return text
        name, end = last
        missed = f"{offset - end} B past the end" if offset > end else "just past the end"
        asked = self.dynamic.get(name)
        told = "" if asked is None else f": the launch asks for {asked} B of dynamic shared memory"
        return f"{text}, {missed} of {name}{told}"

    def buffer_before(self, offset: int) -> tuple[str, int] | None:
        """(name, end) of the last shared buffer, if the offset lies past all of them."""
        before = [(start + size, name) for name, _, start, size in self.names if start + size <= offset]
        if self.knows(offset) or not before or any(start > offset for _, _, start, _ in self.names):
            return None
        end, name = max(before)
        return name, end


def lanes_text(mask: int) -> str:
    """`all`, `lane 3`, or a list of ranges."""
    if mask == 0xFFFF_FFFF:
        return "all"
    lanes = [i for i in range(32) if (mask >> i) & 1]
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and runs[-1][1] == lane - 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _static_names(launch, dynamic_too: bool, arrays: Container[str]) -> list[tuple[str, str, int, int]]:
    """(name, type, offset, size) of the shared variables that the PTX declares.

    dynamic_too: names of dynamic buffers are known; otherwise the extern variable stands for all of them.
    """
    found = []
    for var in launch.shared_variables():
        if not (var.extern and dynamic_too):
            kind = "uint64" if var.type in ("b64", "u64", "s64") or var.name in arrays else var.type
            size = launch.shared_bytes if var.extern else var.size
            found.append((variable(var.name), kind, launch.shared_offsets[var.name], size))
    return found


def _name_range(entry, dynamic_start: int) -> tuple[str, str, int, int]:
    name, dtype, offset, size = (
        entry[:4] if isinstance(entry, tuple | list) else (entry.name, entry.dtype, entry.offset, entry.size)
    )
    return name, dtype, offset + dynamic_start, size
