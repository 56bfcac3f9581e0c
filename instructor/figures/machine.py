"""Pictures of docs/machine.md: an mbarrier's phase, two proxies with the same bytes, an SM and its engines.

The style sheet in each file does the animation; readers who prefer no motion get the same picture without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tirxlab.explain.picture.svg import Part, Shape, alike, colour, document, line, number, rect, text

BOX = 128 * 64 * 2  # bytes of one fp16 tile of A, or of B
SECONDS = 2  # for each state of an animation
_STILL = "@media (prefers-reduced-motion: reduce) { * { animation: none !important } }"


# ---- an mbarrier ----


@dataclass(frozen=True)
class Barrier:
    """An mbarrier of `init(count)`. PTX ISA 9.7.13.15: a phase ends when both counts are 0."""

    count: int
    phase: int = 0
    pending: int = 1  # arrivals that are still to come
    tx: int = 0  # tx-count: bytes announced but not arrived; below 0: arrived but not announced

    def after(self, arrivals: int = 0, announced: int = 0, came: int = 0) -> Barrier:
        """The barrier after some arrivals, announced bytes and arrived bytes."""
        pending, tx = self.pending - arrivals, self.tx + announced - came
        if pending or tx:
            return replace(self, pending=pending, tx=tx)
        return Barrier(self.count, self.phase + 1, self.count, 0)


# What happens to tma_bar of step 4 in its first K tile -> how it counts.
STEPS: tuple[tuple[str, dict[str, int]], ...] = (
    ("init(1)", {}),
    ("TMA brings the tile of A", {"came": BOX}),
    ("arrive.expect_tx(32768)", {"arrivals": 1, "announced": 2 * BOX}),
    ("TMA brings the tile of B", {"came": BOX}),
)


def states() -> list[tuple[str, Barrier]]:
    """(what happened, the barrier after it)"""
    barrier, found = Barrier(1), []
    for said, change in STEPS:
        barrier = barrier.after(**change) if change else barrier
        found.append((said, barrier))
    return found


def mbarrier() -> str:
    """A row for each event: both counts, the phase, and what a wait for parity 0 does then."""
    left = (12, 206, 326, 460, 560)
    parts: list[Part] = []
    said = [text(x, 24, head, 11, bold=True) for x, head in zip(left, _HEADS, strict=True)]
    for row, (event, barrier) in enumerate(states()):
        y = 40 + row * 44
        parts += [f'<g class="row r{row}">', rect(4, y, 692, 38, "#f1f3f5", ""), "</g>"]
        said.append(text(left[0], y + 23, event, 11))
        said.append(text(left[1] + 20, y + 23, barrier.pending, 13, "middle", bold=True))
        said += _gauge(left[2], y + 8, barrier.tx)
        said.append(text(left[3] + 20, y + 23, barrier.phase, 13, "middle", bold=True))
        waits = "returns" if barrier.phase else "blocks"
        said.append(text(left[4], y + 23, waits, 12, fill="threads" if barrier.phase else "mma", bold=True))
    count, slot = len(STEPS), 100 / len(STEPS)
    style = f".row {{ opacity: 0; animation: on {count * SECONDS}s step-end infinite }} "
    style += f"@keyframes on {{ 0% {{ opacity: 1 }} {slot:g}% {{ opacity: 0 }} }} "
    style += " ".join(f".r{n} {{ animation-delay: {(n - count) * SECONDS}s }}" for n in range(count))
    return document(700, 40 + count * 44 + 6, [*parts, *alike(said)], f"{style} {_STILL}")


_HEADS = ("what happens", "arrivals left", "bytes to come", "phase", "try_wait(bar, 0)")


def _gauge(x: float, y: float, tx: int) -> list[Shape]:
    """Bytes beside a line at 0: to the right those that are missing, to the left those that came early."""
    middle, scale = x + 40, 36 / (2 * BOX)
    bar = rect(middle + min(tx, 0) * scale, y, abs(tx) * scale, 10, "tma" if tx > 0 else "store", "")
    said = text(middle, y + 22, f"{tx:,}", 9, "middle")
    return [line(middle, y - 3, middle, y + 13, "ink"), *([bar] if tx else []), said]


# ---- boxes, paths between them, and dots that move along ----


def _box(x, y, w, h, title, *lines, fill="light", edge="grey") -> list[Shape]:
    parts = [rect(x, y, w, h, fill, edge, width=1.2), text(x + w / 2, y + 17, title, 11, "middle", bold=True)]
    return parts + [text(x + w / 2, y + 32 + 13 * n, said, 9, "middle") for n, said in enumerate(lines)]


def _way(points: Sequence[tuple[float, float]], tone: str, dashed: bool = False) -> Shape:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    tip = f'marker-end="url(#tip-{tone})"'
    look = f' fill="none" stroke="{colour(tone)}" stroke-width="2"{dash} {tip}'
    return Shape(f'path d="{_path(points)}"', look)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _tips(*tones: str) -> str:
    made = (
        f'<marker id="tip-{tone}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour(tone)}"/></marker>'
        for tone in tones
    )
    return f"<defs>{''.join(made)}</defs>"


def _dot(name: str, points: list[tuple[float, float]], tone: str, seconds: float) -> tuple[str, str]:
    """(a dot, the rule that moves it along the points)"""
    shape = f'<circle class="{name}" r="6" fill="{colour(tone)}" stroke="white" stroke-width="1.5"/>'
    rule = f'.{name} {{ offset-path: path("{_path(points)}"); animation: go {seconds}s linear infinite }}'
    return shape, rule


_GO = "@keyframes go { from { offset-distance: 0% } to { offset-distance: 100% } }"


# ---- two proxies ----


def proxies() -> str:
    """A thread's write and a TMA store of the same bytes: without a fence, and with it."""
    parts: list[Shape] = []
    dots, rules = [], [_GO, _STILL]
    for panel, (title, fenced) in enumerate((("without a fence", False), ("with the fence", True))):
        top = 10 + panel * 190
        parts.append(text(10, top + 12, title, 12, bold=True))
        parts += _box(10, top + 30, 150, 56, "thread", "st.shared, as Tx.copy", edge="threads")
        parts += _box(10, top + 106, 150, 56, "TMA store", "issued by one thread", edge="store")
        parts += _box(
            240, top + 30, 150, 56, "generic proxy", "the write is on its way", fill="#ebfbee", edge="threads"
        )
        parts += _box(240, top + 106, 150, 56, "async proxy", "reads here", fill="#f3f0ff", edge="store")
        parts += _box(480, top + 30, 210, 132, "shared memory: Dsmem", "the same bytes", "for both proxies")
        write = [(160, top + 58), (240, top + 58)]
        parts.append(_way(write, "threads"))
        way = [(390, top + 58), (480, top + 58)]
        parts.append(_way(way, "threads", dashed=not fenced))
        parts.append(_way([(480, top + 134), (390, top + 134)], "store"))
        parts.append(_way([(240, top + 134), (160, top + 134)], "store"))
        dot, rule = _dot(f"w{panel}", [(160, top + 58), (480 if fenced else 330, top + 58)], "threads", 3)
        rules.append(rule)
        dots.append(dot)
        if fenced:
            parts.append(text(435, top + 48, "fence", 10, "middle", "threads", bold=True))
            parts.append(text(585, top + 120, "new bytes", 12, "middle", "threads", bold=True))
        else:
            parts.append(text(435, top + 48, "when?", 10, "middle", "mma", bold=True))
            parts.append(text(585, top + 120, "old bytes, perhaps", 12, "middle", "mma", bold=True))
    return document(700, 385, [_tips("threads", "store", "mma"), *alike(parts), *dots], " ".join(rules))


# ---- an SM ----


# x, y, width, height, title, lines, colour of the inside and of the edge
_BOXES = (
    (40, 230, 190, 78, "TMA",
     "copies boxes, swizzled;|one thread issues,|an mbarrier counts bytes", "#e7f5ff", "tma"),
    (40, 96, 190, 84, "shared memory",
     "up to 227 KiB of a CTA:|Asmem, Bsmem, Dsmem,|mbarriers", "light", "grey"),
    (300, 40, 150, 84, "tensor core",
     "reads A, B from SMEM;|one thread issues,|a commit signals the end", "#fff4e6", "mma"),
    (510, 40, 164, 84, "tensor memory",
     "128 lanes x 512 columns|of 32 bits: D and|nothing else", "light", "grey"),
    (510, 206, 164, 84, "128 threads",
     "4 warps; warp w reaches|lanes 32w to 32w + 31;|255 registers each", "#ebfbee", "threads"),
    (10, 352, 680, 46, "global memory behind L2",
     "A, B, D", "light", "grey"),
)  # fmt: skip
_WAYS = (  # of a tile, in turn
    ([(90, 352), (90, 308)], "tma"),
    ([(90, 230), (90, 180)], "tma"),
    ([(160, 96), (160, 70), (300, 70)], "mma"),
    ([(450, 82), (510, 82)], "mma"),
    ([(592, 124), (592, 206)], "threads"),
    ([(510, 248), (370, 248), (370, 140), (230, 140)], "threads"),
    ([(190, 180), (190, 230)], "store"),
    ([(190, 308), (190, 352)], "store"),
)
_LABELS = (
    (96, 210, "loads"),
    (196, 210, "store"),
    (190, 62, "A, B: MMA"),
    (466, 72, "D"),
    (598, 170, "tcgen05.ld"),
    (376, 196, "st.shared,"),
    (376, 210, "then the fence"),
)


def sm() -> str:
    """An SM, its memories and its two engines, and the way of a tile through step 4."""
    parts = [rect(10, 10, 680, 318, "#f8f9fa", "ink", width=1.2)]
    parts.append(text(22, 30, "SM: one CTA of step 4", 12, bold=True))
    for x, y, w, h, title, lines, fill, edge in _BOXES:
        parts += _box(x, y, w, h, title, *lines.split("|"), fill=fill, edge=edge)
    parts += [_way(points, tone) for points, tone in _WAYS]
    parts += [text(x, y, said, 10) for x, y, said in _LABELS]
    dot, rule = _dot("tile", [point for points, _ in _WAYS for point in points], "ink", 12)
    tips = _tips("tma", "mma", "threads", "store")
    return document(700, 410, [tips, *alike(parts), dot], f"{_GO} {rule} {_STILL}")


FIGURES = {"mbarrier.svg": mbarrier, "proxies.svg": proxies, "sm.svg": sm}
