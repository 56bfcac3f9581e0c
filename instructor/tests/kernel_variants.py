"""Correct kernels that are built differently from the reference, and steps in place of others."""

from __future__ import annotations

import re
from pathlib import Path

from tirxlab.steps import read_skeleton, sections

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = (ROOT / "instructor" / "solutions" / "gemm_kernels.py").read_text(encoding="utf-8")


def file_with(steps: dict[int, str], head: str | None = None) -> str:
    """A kernels file with these steps; the others are skeletons."""
    parts = sections(read_skeleton())
    return "".join({**parts, 0: head or sections(REFERENCE)[0], **steps}.values())


def solved(*steps: int) -> str:
    """A kernels file with these steps of the reference."""
    return file_with({step: sections(REFERENCE)[step] for step in steps})


def moved(source: int, target: int) -> str:
    """A kernels file with the reference of step `source` in place of step `target`."""
    text = sections(REFERENCE)[source]
    return file_with({target: text.replace(f"def hgemm_v{source}(", f"def hgemm_v{target}(")})


def put(text: str, *pairs: tuple[str, str]) -> str:
    """Replaces every match of each pattern (of whole lines); each must match."""
    for pattern, new in pairs:
        text, count = re.subn(pattern, new, text, flags=re.M)
        if not count:
            raise ValueError(f"not there: {pattern}")
    return text


def _narrow(text: str) -> str:
    """Tiles of 64 columns of D for each CTA."""
    return text.replace("BLK_M, BLK_N, BLK_K = 128, 128, 64", "BLK_M, BLK_N, BLK_K = 128, 64, 64")


def _transposed(text: str) -> str:
    """CTAs are numbered along the columns first."""
    text = text.replace("Tx.cta_id([M // BLK_M, N // BLK_N]", "Tx.cta_id([N // BLK_N, M // BLK_M]")
    return text.replace("m_st = Tx.meta_var(bx * BLK_M)", "m_st = Tx.meta_var(by * BLK_M)").replace(
        "n_st = Tx.meta_var(by * BLK_N)", "n_st = Tx.meta_var(bx * BLK_N)"
    )


def _b_first(text: str) -> str:
    """B is loaded before A, and the bytes are announced before the copies."""
    a, b, announce = (
        rf"( +)({start}.*\n)" for start in (r"Tx\.copy_async\(Asmem", r"Tx\.copy_async\(Bsmem", _TX)
    )
    return re.sub(a + b + announce, r"\1\6\3\4\5\2", text)


_TX = r"Tx\.ptx\.mbarrier\.arrive\.expect_tx"


def _deeper(text: str) -> str:
    """One more stage."""
    return re.sub(r"^    PIPE_DEPTH = (\d)$", lambda m: f"    PIPE_DEPTH = {int(m[1]) + 1}", text, flags=re.M)


def _other_order(text: str) -> str:
    """Tiles in row order instead of groups for L2."""
    return text.replace("l2_group_size=L2_GROUP_SIZE", "l2_group_size=1")


def _whole_rows(text: str) -> str:
    """Write-back in chunks of 128 columns; step 10 gives up a stage for it."""
    text = text.replace("    EPI_N = 64 ", "    EPI_N = 128 ")
    return text.replace("PIPE_DEPTH = 4", "PIPE_DEPTH = 3") if "NUM_CONSUMER = 2" in text else text


def _other_warps(text: str) -> str:
    """Warp 2 issues the loads and, where a single warp multiplies, warp 1 does."""
    text = re.sub(r"if warp_id == 3:(\n +with Tx\.thread)", r"if warp_id == 2:\1", text)
    return re.sub(
        r"if warp_id == 0:(\n +with Tx\.thread\(parent=\"warp\"\)\[Tx\.ptx\.elect_sync\(\)\]:\n +while)",
        r"if warp_id == 1:\1",
        text,
    )


EDITS = {
    4: (_narrow, _transposed, _b_first),
    5: (_narrow, _transposed, _deeper),
    6: (_narrow, _other_order, _deeper),
    7: (_narrow, _other_warps, _whole_rows),
    8: (_narrow, _other_warps, _deeper),
    9: (_other_order, _other_warps, _whole_rows),
    10: (_other_order, _other_warps, _whole_rows),
}


def variants(step: int) -> dict[str, str]:
    """Name -> kernels file with a correct step that is built differently."""
    found = {}
    for edit in EDITS[step]:
        parts = sections(REFERENCE)
        head, text = edit(parts[0]), edit(parts[step])
        if (head, text) == (parts[0], parts[step]):
            raise ValueError(f"{edit.__name__} does not fit step {step}")
        found[edit.__name__.strip("_")] = file_with({step: text}, head)
    return found
