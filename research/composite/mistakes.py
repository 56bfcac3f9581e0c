"""Student mistakes in steps 3 to 10 that change several things, or the meaning of one: wrong places in a new
structure, the other consumer's barrier, the sums of a smaller kernel. Each was written, with the words that a
good first finding should have, before any check ran on it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "instructor" / "tests" / "bugs"))

from corpus import Edit  # noqa: E402

# lines of the references that several mistakes change
EXPECT = "Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([0]), TILE_BYTES)"
PROXY = 'Tx.ptx.fence.proxy_async("shared::cta")'
BEFORE = "Tx.ptx.tcgen05.fence.before_thread_sync()"
MMA2LD = "mma2ld.arrive(0, cta_group=1, cta_mask=1)"
BOTH = "TILE_BYTES = (BLK_M * BLK_K + BLK_N * BLK_K) * F16_BYTES"
NEXT = "tile_scheduler.next_tile()"
ALLOC = "Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols="


@dataclass(frozen=True)
class Mistake:
    name: str
    step: int
    words: tuple[str, ...]  # at least one is expected in the first finding, or in the message of verify
    edits: tuple[Edit, ...]


def of(step: int, name: str, words: str, *edits: Edit) -> Mistake:
    return Mistake(name, step, tuple(words.split("|")), edits)
