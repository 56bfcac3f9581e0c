"""The evidence for an edit: features, with weights in data/repairs.json (made by research/advice/fit.py).

They describe the kind of an edit, how near it is to what the findings and their hints name, and how much it
changes. Products of features were tried; they ranked slips that they were not fitted to no better.
"""

from __future__ import annotations

import re

from tirxlab.explain.repairs.near import Near
from tirxlab.explain.repairs.text import Builder, Edit

_NAME = re.compile(r"[A-Za-z_]\w+")
_NUMBER = re.compile(r"\b\d+\b")
_HIGH = 12  # more words put in or taken out than this make no further difference


class Evidence:
    """The features of the edits of one builder, given the findings of one run."""

    def __init__(self, builder: Builder, findings: list[dict], message: str):
        self.builder, self.near = builder, Near(builder, findings, message)
        first: dict = findings[0] if findings else {"message": message}
        self.line = (first.get("where") or {}).get("line")
        used = set(_NAME.findall(builder.own))
        self.numbers = set(_NUMBER.findall(first["message"]))
        self.said = set(_NAME.findall(first["message"])) & used
        self.hinted = set(_NAME.findall(first.get("hint") or "")) & used - self.said

    def of(self, edit: Edit) -> dict[str, float]:
        """Name -> value of an edit's features, without those that Fit adds."""
        start, end, _ = edit.splices[0]
        old = " ".join(self.builder.text[a:b] for a, b, _ in edit.splices)
        new = " ".join(one for _, _, one in edit.splices)
        before, after = set(_NAME.findall(old)), set(_NAME.findall(new))
        gone = set(_NUMBER.findall(old)) - set(_NUMBER.findall(new))
        near = self.near.of(edit)
        found = {
            f"family {edit.family}": 1.0,
            "near": near,
            "near squared": near * near,
            "given": float(self._given(edit)),
            "words out": min(_HIGH, len(_NAME.findall(old))) / _HIGH,
            "words in": min(_HIGH, len(_NAME.findall(new))) / _HIGH,
            "said out": float(bool((before - after) & self.said)),
            "said in": float(bool((after - before) & self.said)),
            "number out": float(bool(gone & self.numbers)),
            "hinted out": float(bool((before - after) & self.hinted)),
            "hinted in": float(bool((after - before) & self.hinted)),
            "several": float(len(edit.splices) > 1 and edit.family != "moved"),
        }
        if self.line is not None and self.builder.line(start) <= self.line <= self.builder.line(end):
            found["line of the finding"] = 1.0
        return found

    def _given(self, edit: Edit) -> bool:
        """Whether the edit would change only lines of the handout."""
        first = self.builder.before + 1
        return all(
            all(
                self.builder.given[
                    self.builder.line(a) - first : self.builder.line(max(a, b - 1)) - first + 1
                ]
            )
            for a, b, _ in edit.splices
        )
