"""Kernels from text: each becomes a real module in its own file, like a student's."""

import importlib.util
import itertools
import sys
import textwrap
from pathlib import Path

HEAD = """from tirxlab import *

L = tma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (128, 64))
TMEM = TileLayout(S[(128, 512) : (1 @ TLane, 1 @ TCol)])
ROWS = TileLayout(S[(128, 64) : (1 @ axis_tid_in_wg, 1)])
{outer}

@Tx.prim_func(tirx=True)
def kernel(
    A: Tx.Buffer((128, 64), "float16"),
    B: Tx.Buffer((64, 64), "float16"),
    D: Tx.Buffer((128, 64), "float16"),
    R: Tx.Buffer(({threads},), "int32"),
):
    with Tx.kernel():
{ids}
        pool = Tx.PoolAllocator()
        tmem_addr = pool.alloc((1,), "uint32")
{decl}
        pool.commit()
        tid = Tx.meta_var(bx * 128 + warp_id * 32 + lane_id)
{body}
"""
IDS = """bx = Tx.cta_id([{ctas}], parent="kernel")
wg_id = Tx.warpgroup_id([1], parent="cta")
warp_id = Tx.warp_id([4], parent="warpgroup")
lane_id = Tx.thread_id([32], parent="warp")
"""
_serial = itertools.count()


def source(body: str, decl: str = "", outer: str = "", ctas: int = 1, ids: str = "") -> str:
    """The text of a module whose `kernel` has the given declarations (before commit) and body."""

    def indented(text):
        return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8)

    return HEAD.format(
        outer=textwrap.dedent(outer),
        ids=indented(IDS.format(ctas=ctas) + ids),
        decl=indented(decl),
        body=indented(body),
        threads=128 * ctas,
    )


def load_text(folder: Path, text: str):
    """Imports `text` as a module from a file in `folder`."""
    path = folder / f"kernel_{next(_serial)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def make_kernel(folder: Path, body: str, **parts):
    """The parsed kernel of `source(body, **parts)`."""
    return load_text(folder, source(body, **parts)).kernel
