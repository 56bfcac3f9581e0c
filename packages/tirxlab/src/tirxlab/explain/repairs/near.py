"""How near each line of a builder is to the lines, barriers and buffers that the findings name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from tirxlab.explain.repairs.text import Builder, Edit, code

LESS = 0.6  # factor for one step further away
_NAME = re.compile(r"[A-Za-z_]\w+")


class Near:
    """How near lines are to what the findings name: from 1 for the first finding's line down to 0."""

    def __init__(self, builder: Builder, findings: list[dict], message: str):
        self.builder = builder
        self.first = builder.line(builder.begin)
        self.lines: dict[int, float] = {}
        self.names: dict[str, float] = {}
        for weight, said, line in _said(findings, message):
            self._note(weight, said, line)
        self._spread()

    def _note(self, weight: float, said: str, line: int | None) -> None:
        if line:
            self._line(line, weight)
        for many in re.findall(r"\blines? (\d+(?:(?:, | and | to )\d+)*)|\.py:(\d+)", said):
            for number in re.findall(r"\d+", " ".join(many)):
                self._line(int(number), weight)
        for name in _NAME.findall(said):
            self.names[name] = max(weight * LESS, self.names.get(name, 0))

    def _line(self, line: int, weight: float) -> None:
        self.lines[line] = max(weight, self.lines.get(line, 0))

    def _spread(self) -> None:
        """Spread nearness to lines that name the same objects, enclose a named line, or set what it uses."""
        objects = {node.id for node in self.builder.nodes if isinstance(node, ast.Name)}
        for number, line in enumerate(self.builder.lines, self.first):
            for name in set(_NAME.findall(code(line))) & self.names.keys() & objects:
                self._line(number, self.names[name])
        named = dict(self.lines)
        for node in self.builder.nodes:
            if isinstance(node, ast.stmt):
                inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                best = max((named.get(n + self.first - 1, 0) for n in inside), default=0)
                simple = not hasattr(node, "body")
                for n in inside if simple else inside[:1]:
                    self._line(n + self.first - 1, best * (1 if simple else LESS))
        self._values()

    def _values(self) -> None:
        """Spread nearness to assignments of what a near line uses, over two steps."""
        for _ in range(2):
            used: dict[str, float] = {}
            for number, line in enumerate(self.builder.lines, self.first):
                for name in _NAME.findall(code(line)):
                    used[name] = max(used.get(name, 0), self.lines.get(number, 0))
            for node in self.builder.nodes:
                if isinstance(node, ast.Assign):
                    made = [
                        one.id
                        for target in node.targets
                        for one in ast.walk(target)
                        if isinstance(one, ast.Name)
                    ]
                    best = max((used.get(name, 0) for name in made), default=0)
                    self._line(node.lineno + self.first - 1, best * LESS)

    def of(self, edit: Edit) -> float:
        """The nearness of the nearest line that an edit touches."""
        best = 0.0
        for start, end, _ in edit.splices:
            first, last = self.builder.line(start), self.builder.line(max(start, end - 1))
            best = max(best, *(self.lines.get(n, 0.0) for n in range(first, last + 1)))
        return best


def _said(findings: list[dict], message: str) -> Iterable[tuple[float, str, int | None]]:
    """(weight, text, line) of the findings' texts; the first weighs most."""
    for i, finding in enumerate(findings[:3]):
        sentence, _, more = finding["message"].partition("\n")
        weight = 1.0 if i == 0 else LESS
        yield weight, sentence, finding["where"].get("line")
        yield weight * 0.7, more, None
    if not findings:
        yield LESS, message, None
