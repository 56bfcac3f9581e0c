"""Whether the first finding names the changed line, or the barrier or buffer on it.

A finding names its line, and the objects in the first line of its message (further lines list everybody who
waits, and would name the place by chance). A changed statement is represented by its own text and by whatever
it passes a value to: a changed `k_st = ..` by the copies that use k_st, a changed `tma_phase.init(..)` by the
barriers that are waited for with tma_phase, a call of `tma_load` by that function, the bound of a loop by
everything that its variable reaches, the head of a loop or guard by its block of at most 24 lines; a
statement that moved out of a block by the line of the block that is now next to it.
"""

from __future__ import annotations

import ast
import re

_WORD = re.compile(r"[A-Za-z_]\w*")
_OBJECT = re.compile(
    r"^\s*(\w+) = (?:pool\.alloc|TMABar|MBarrier|TCGen05Bar|Tx\.alloc_local|\w+\.view|\w+\.remote_view)\b"
)
_ASSIGNED = re.compile(r"^\s*(?:for )?(\w+(?:, \w+)*) (?:=|in) ")
_STATE = re.compile(r"^\s*(\w+)\.(?:init|move_to_next_stage|next_tile)\(")
_INLINE = re.compile(r"^\s*def (\w+)\(")
_STOP = {"Tx", "pool", "kernel", "warp_id"}
SHORT = 24  # lines of a block that its head may represent
# Code -> what a finding calls it, where that is not a name in the kernel.
CALLED = {
    r"\btmem\b|tmem_addr|TMEM_COLS": ("tensor memory", "tcgen05.alloc", "tcgen05.dealloc"),
    r"tcgen05\.(alloc|dealloc|relinquish)": ("tcgen05.alloc", "tcgen05.dealloc", "free columns"),
    r"gemm_async": ("tcgen05.mma", "tensor core"),
    r"cta_sync": ("cta_sync", "barrier 0", "no barrier between"),
    r"warpgroup_sync": ("barrier 1", "barrier 2", "no barrier between", "warpgroup_sync", "bar.sync"),
    r"cluster_sync": ("cluster_sync", "cluster barrier", "from having ended"),
    r"fence\.proxy_async": ("fence.proxy.async",),
    r"tcgen05\.fence": ("tcgen05.fence",),
    r"(commit|wait)_group": ("commit_group", "committed group", "wait_group", "has not waited"),
    r"wgmma\.fence": ("wgmma.fence",),
    r"try_wait|\.wait\(": ("was not waited for", "does not wait"),
    r"elect_sync|\[tid == 0\]": ("each issue", "lanes issue"),
    r"cta_group|cta_mask|cta_id|remote_view": ("cta_group", "cta_mask", "cta_id"),
    r"_desc|encode_matrix": ("descriptor", "tensor core", "wgmma"),
    r"\bacc\b": ("registers", "wgmma"),
}


def names_of(finding: dict) -> tuple[set[int], str]:
    """(lines, first sentence) of a finding."""
    sentence = finding["message"].split("\n")[0]
    lines = {int(n) for n in re.findall(r"\blines? (\d+)|\.py:(\d+)|\bto (\d+)", sentence) for n in n if n}
    line = finding["where"].get("line")
    return lines | ({line} if line else set()), sentence


def localised(row: dict) -> str:
    """ "line", "name", "between" (a deleted statement is between the two lines named), or ""."""
    findings = row["outcome"]["findings"]
    if not findings:
        return ""
    named, sentence = names_of(findings[0])
    place = Place(row)
    if named & place.lines:
        return "line"
    if any(_says(sentence, name) for name in place.names):
        return "name"
    if row["operator"] == "delete" and len(named) > 1 and min(named) < min(place.lines) < max(named):
        return "between"
    return ""


def _says(sentence: str, name: str) -> bool:
    """Whether a sentence contains a name as a whole word, or a phrase."""
    return (
        bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence))
        if name.isidentifier()
        else name in sentence
    )


class Place:
    """The lines and the objects that a mutant changed."""

    def __init__(self, row: dict):
        text = row["text"].split("\n")
        self.code = [line.split("#")[0] for line in text]
        first = _function_start(self.code, row["lines"][0])
        self.range = range(first, _function_end(self.code, first))
        self.objects = self._objects()
        self.lines = _statements(ast.parse(row["text"]), row["lines"])
        if row["operator"] == "move out":  # the block that the statement left, by its first or last line
            self.lines |= {min(row["lines"]) - 1, max(row["lines"]) + 1}
        lines = [self.code[n - 1] for n in sorted(self.lines)]
        before = [line.replace(row["new"], row["old"]) for line in lines if row["new"].strip() in line]
        changed = "\n".join([row["old"], row["new"], *lines, *before])
        words = set(_WORD.findall(changed))
        texts = [changed]
        for name in self._values(changed) | (words & set(self._inlines())):
            self.lines |= self._users(name)
            texts += [self.code[n - 1] for n in self._users(name)]
        joined = "\n".join(texts)
        self.names = {w for w in _WORD.findall(joined) if w in self.objects}
        for pattern, calls in CALLED.items():
            if re.search(pattern, joined):
                self.names |= set(calls)

    def _objects(self) -> set[str]:
        found = {m[1] for i in self.range if (m := _OBJECT.match(self.code[i]))}
        return found | {"A", "B", "D", "B_T", "tma2mma_cta0"}

    def _inlines(self) -> dict[str, range]:
        """Inline functions -> their lines (1-based)."""
        found = {}
        for i in self.range:
            match = _INLINE.match(self.code[i])
            if match and match[1] not in ("kernel",) and not match[1].startswith(("hgemm", "build")):
                found[match[1]] = range(i + 1, _block_end(self.code, i) + 2)
        return found

    def _values(self, changed: str) -> set[str]:
        """Names that the changed lines assign, and those that depend on them."""
        found = set()
        for line in changed.split("\n"):
            for pattern in (_ASSIGNED, _STATE):
                match = pattern.match(line)
                found |= set(match[1].split(", ")) - self.objects - _STOP if match else set()
        for _ in range(2):
            for i in self.range:
                match = _ASSIGNED.match(self.code[i])
                if match and found & set(_WORD.findall(self.code[i])):
                    found |= set(match[1].split(", ")) - self.objects
        return found

    def _users(self, name: str) -> set[int]:
        inside = self._inlines().get(name)
        if inside is not None:
            return set(inside)
        return {i + 1 for i in self.range if re.search(rf"\b{name}\b", self.code[i])}


def _statements(tree: ast.Module, lines: list[int]) -> set[int]:
    """The lines of the simple statements on `lines`; a head represents its block if that is short."""
    found, wanted = set(lines), set(lines)
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, ast.FunctionDef):
            continue
        body = getattr(node, "body", None)
        own = range(node.lineno, (body[0].lineno if body else node.end_lineno + 1))
        if wanted & set(own):
            whole = range(node.lineno, node.end_lineno + 1)
            found |= set(whole if len(whole) <= SHORT else own)
    return found


def _function_start(code: list[str], line: int) -> int:
    return max(i for i in range(min(line, len(code))) if code[i].startswith("def "))


def _function_end(code: list[str], first: int) -> int:
    return next((i for i in range(first + 1, len(code)) if code[i].startswith("def ")), len(code))


def _block_end(code: list[str], first: int) -> int:
    """The last line (from 0) of the block whose head is line `first`."""
    indent = len(code[first]) - len(code[first].lstrip())
    last = first
    for i in range(first + 1, len(code)):
        if code[i].strip() and len(code[i]) - len(code[i].lstrip()) <= indent:
            break
        last = i if code[i].strip() else last
    return last
