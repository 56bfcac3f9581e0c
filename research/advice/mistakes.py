"""Mistakes of known cause: one edit of a reference kernel each, at every place that matches its pattern.

A mistake belongs to a family: the subject that a finding about it should have. families.py has the causes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from research.mutation.sources import SOURCES, Source


@dataclass(frozen=True)
class Rule:
    family: str
    pattern: str  # of a line of the kernel's builder
    new: str  # what replaces the match; groups as in re.sub


RULES = (
    Rule("count", r"\b(\w+)\.init\((\d+)\)", r"\1.init(\2 + 1)"),
    Rule("count", r"\b(\w+)\.init\((\d+)\)", r"\1.init(\2 * 2)"),
    Rule("count", r"\b(\w+)\.init\((\d\d+)\)", r"\1.init(\2 // 2)"),
    Rule("count", r"\b(\w+)\.init\((\d\d+)\)", r"\1.init(\2 - 1)"),
    Rule("phase", r"\.wait\((.+), (\w+\.phase|phase\w*)\)", r".wait(\1, \2 ^ 1)"),
    Rule("phase", r"is_producer=True", "is_producer=False"),
    Rule("phase", r"is_producer=False", "is_producer=True"),
    Rule("phase", r"^(\s*)\w+\.move_to_next_stage\(\)", r"\1pass"),
    Rule("phase", r"^(\s*)(\w+\.move_to_next_stage\(\))", r"\1\2\n\1\2"),
    Rule("phase", r"^(\s*)(phase\w*) = \2 \^ 1", r"\1pass"),
    Rule("slot", r"\.wait\((\w+\.stage|stage)", r".wait((\1 + 1) % PIPE_DEPTH"),
    Rule("slot", r"\.arrive\(stage", r".arrive((stage + 1) % PIPE_DEPTH"),
    Rule("slot", r"ptr_to\(\[(\w+)\]\)", r"ptr_to([(\1 + 1) % PIPE_DEPTH])"),
    Rule("slot", r"\.(wait|arrive)\((wg_id|warp_id)", r".\1(1 - \2"),
    Rule("buffer", r"(Tx\.copy_async\(\w+)\[stage\b", r"\1[(stage + 1) % PIPE_DEPTH"),
    Rule("buffer", r"^(\s*)([AB]smem)\[stage\b", r"\1\2[(stage + 1) % PIPE_DEPTH"),
    Rule("loop", r"range\(K_TILES\)", "range(K_TILES - 1)"),
    Rule("loop", r"range\(K_TILES\)", "range(K_TILES + 1)"),
    Rule("loop", r"^(\s*)tile_scheduler\.next_tile\(\)", r"\1pass"),
    Rule("bytes", r"(\w+\.arrive\(.*)\b((?:CTA_GROUP \* )?TILE_BYTES)\b", r"\1\2 // 2"),
    Rule("bytes", r"(\w+\.arrive\(.*)\b((?:CTA_GROUP \* )?TILE_BYTES)\b", r"\1\2 * 2"),
    Rule("wait", r"^(\s*)\w+\.wait\(.*\)", r"\1pass"),
    Rule("signal", r"^(\s*)\w+\.arrive\(.*\)$", r"\1pass"),
    Rule("fence", r"^(\s*)Tx\.ptx\.fence\.proxy_async\(.*\)", r"\1pass"),
    Rule("sync", r"^(\s*)Tx\.cuda\.(cta|warpgroup|cluster)_sync\(.*\)", r"\1pass"),
)


def first_difference(before: str, after: str) -> tuple[int, str, str]:
    """(0-based number of the first line that differs, that line before, that line after)."""
    lines = zip(before.split("\n"), after.split("\n"), strict=False)
    return next((n, old.strip(), new.strip()) for n, (old, new) in enumerate(lines) if old != new)


@dataclass(frozen=True)
class Mistake:
    source: Source
    family: str
    line: int  # 1-based, of the new text
    old: str
    new: str
    parts: tuple[str, ...]  # of the whole file's text; mistakes share those that do not differ
    what: str = ""  # the misconception behind it (slips.py)

    @property
    def text(self) -> str:
        return "".join(self.parts)


def mistakes(source: Source) -> Iterator[Mistake]:
    """Every mistake of every rule in the source's builder."""
    lines = source.text().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(f"def {source.builder}("))
    ends = (i for i in range(start + 1, len(lines)) if re.match(r"\S", lines[i]))
    end = next(ends, len(lines))
    for rule in RULES:
        for at in range(start, end):
            code, mark, note = lines[at].partition("  #")
            made = re.sub(rule.pattern, rule.new, code, count=1)
            if made != code and not code.lstrip().startswith("#"):
                text = "\n".join([*lines[:at], *(made + mark + note).split("\n"), *lines[at + 1 :]])
                yield Mistake(source, rule.family, at + 1, code.strip(), made.strip(), (text,))


def draw(seed: int) -> Iterator[Mistake]:
    """A practically endless sequence of distinct mistakes: a random family, then one of its mistakes."""
    pools: dict[str, list[Mistake]] = {}
    for source in SOURCES:
        if source.name.startswith("step"):
            for mistake in mistakes(source):
                pools.setdefault(mistake.family, []).append(mistake)
    rng = random.Random(seed)
    for pool in pools.values():
        rng.shuffle(pool)
    while any(pools.values()):
        family = rng.choice(sorted(name for name, pool in pools.items() if pool))
        yield pools[family].pop()
