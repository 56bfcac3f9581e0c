"""Describes what an edit changes: the line, its text, and its new text."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from tirxlab.explain.repairs.text import Edit

LONGEST = 100  # most characters of a line that are shown


@dataclass(frozen=True)
class Repair:
    """Lines of a file that make the step pass: `new` from `line` on, in place of `old`."""

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    review: bool = False  # whether a review remains

    @classmethod
    def of(cls, edit: Edit, text: str, review: bool = False) -> Repair:
        before, after = text.splitlines(), edit.applied(text).splitlines()
        changes = [
            one
            for one in difflib.SequenceMatcher(None, before, after, False).get_opcodes()
            if one[0] != "equal"
        ]
        a, b = changes[0][1], changes[-1][2]
        c, d = changes[0][3], changes[-1][4]
        return cls(a + 1, tuple(before[a:b]), tuple(after[c:d]), review)

    @property
    def said(self) -> str:
        """One phrase for a change of one line; a small diff for more."""
        old, new = (_stripped(part) for part in (self.old, self.new))
        if len(old) == len(new) == 1 and old != new:
            return f"with `{new[0]}` instead of `{old[0]}` in line {self.line}"
        if len(new) == 1 and not old:
            return f"with `{new[0]}` before line {self.line}"
        if len(old) == 1 and not new:
            return f"without `{old[0]}` in line {self.line}"
        more = len(self.old) - 1
        where = f"lines {self.line} to {self.line + more}" if more > 0 else f"line {self.line}"
        before, after = _dedented(self.old, self.new)
        shown = [line for line in difflib.ndiff(before, after) if line[0] in "+- "]
        return f"with {where} as below\n" + "\n".join("  " + line for line in _near_changes(shown))


def told(repairs: list[Repair]) -> str:
    """One or two repairs that were tried, in the words of a finding's hint."""
    first, *others = (repair.said for repair in repairs[:2])
    right = "all runs of this step are right"
    right += "; what is under review stays" if any(repair.review for repair in repairs[:2]) else ""
    if "\n" in first or not others or "\n" in others[0]:
        head, _, rest = first.partition("\n")
        return f"tried: {head}, {right}{':' if rest else ''}" + (rest and f"\n{rest}")
    return f"tried: either {first}, or {others[0]}: {right}"


def _near_changes(lines: list[str]) -> list[str]:
    """The changed lines of a diff, with one on either side; `..` for lines left out in between."""
    changed = [n for n, line in enumerate(lines) if line[0] != " "]
    kept = {near for n in changed for near in (n - 1, n, n + 1)}
    marked = [line if n in kept else "  .." for n, line in enumerate(lines)]
    return [line for n, line in enumerate(marked) if n in kept or line != marked[n - 1] or n == 0]


def _stripped(lines: tuple[str, ...]) -> list[str]:
    return [line.split("  #")[0].strip()[:LONGEST] for line in lines if line.strip()]


def _dedented(*parts: tuple[str, ...]) -> list[list[str]]:
    """Lines without comments, all moved left by the same amount."""
    bare = [[line.split("  #")[0].rstrip() for line in part if line.strip()] for part in parts]
    depth = min((len(line) - len(line.lstrip()) for part in bare for line in part), default=0)
    return [[line[depth:] for line in part] for part in bare]
