"""The pictures on the step pages: what `./lab show S` draws of the reference kernels."""

from __future__ import annotations

from instructor.figures.runs import arrays, artifact
from instructor.figures.structure import recorded
from tirxlab.explain.picture import draw
from tirxlab.explain.picture.facts import structure
from tirxlab.explain.picture.tiles import owners, stored

# Small, and with several tiles per CTA from step 6 on.
SIZES = {
    1: (128, 128, 64), 2: (128, 128, 256), 3: (384, 640, 128), 4: (384, 640, 128), 5: (384, 640, 256),
    6: (1536, 1664, 128), 7: (1536, 1664, 128), 8: (1536, 1664, 256), 9: (2048, 2560, 256),
    10: (4096, 2560, 256),
}  # fmt: skip


def page_picture(step: int) -> str:
    """Tiles, shared memory, tensor memory and barriers of a step, as SVG."""
    size = SIZES[step]
    built, data = artifact(step, size), arrays(size)
    timeline = recorded(step, size)
    facts = structure(built, timeline)
    found, order = owners(built, {"A": data["A"], "B": data["B"]}), stored(timeline, "D")
    panels = [
        draw.tile_panel(found, built.cluster[0], chosen=0, order=order),
        draw.memory_panel(facts.memory, facts.shared_bytes),
        draw.tmem_panel(facts),
        draw.barrier_panel(facts),
    ]
    return draw.page(f"step {step} at {'x'.join(map(str, size))}", panels)
