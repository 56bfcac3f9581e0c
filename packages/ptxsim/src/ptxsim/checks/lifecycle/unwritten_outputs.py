"""Output elements that no thread and no copy has written.

A float array with the same NaN in every element when the kernel starts is an output that the caller has
marked: an element that still holds that NaN afterwards was never written. (Arithmetic produces other NaNs.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.phrases import line_of, lines_text
from ptxsim.lowering.emit import Program
from ptxsim.report.findings import Reporter

_TILE, _WARP = 128, 32  # rows of a tile, and of a warp's part of tensor memory


@dataclass(frozen=True)
class Marked:
    name: str
    array: np.ndarray
    mark: int  # bit pattern of every element before the launch


def _bits(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(f"u{array.dtype.itemsize}")


def marked_arrays(arrays: dict[str, np.ndarray]) -> list[Marked]:
    """Those of `arrays` (by name) in which every element is the same NaN."""
    found = []
    for name, array in arrays.items():
        if array.size < 2 or array.dtype.kind not in "fV" or array.dtype.itemsize > 8:
            continue
        try:
            nan = np.isnan(float(array.flat[0]))
        except TypeError:  # not a number type
            continue
        bits = _bits(array)
        if nan and (bits[:64] == bits[0]).all() and (bits == bits[0]).all():
            found.append(Marked(name, array, int(bits[0])))
    return found


def report_unwritten(marked: list[Marked], reporter: Reporter, program: Program) -> None:
    """Adds a finding for every array of which a part, but not all, still holds its mark."""
    outside = [f for f in reporter.by_identity.values() if f.evidence.get("cause") == "useless-stores"]
    far = "".join(_where(finding) for finding in outside if finding.evidence.get("edge"))
    diagonal = next((text for f in outside if (text := f.evidence.get("diagonal"))), "")
    far += f"; {diagonal}" if diagonal else ""
    for output in marked:
        left = (_bits(output.array) == output.mark).reshape(output.array.shape)
        count = int(left.sum())
        if count == left.size:
            _none_written(output, outside, reporter)
        _added_to(output, reporter)
        if not count:
            _tiles_too_many(output, reporter)
        if not 0 < count < left.size:
            continue
        _same_tile_instead(output, reporter)
        first = tuple(int(i) for i in np.unravel_index(int(np.argmax(left)), left.shape))
        where, cause = _blocks(left)
        own = "" if where else _columns_of_warps(left)
        reporter.add(
            "uninitialized", "error",
            f"{output.name}: {count} of {left.size} elements were never written{where}{own} "
            f"(the first one is {output.name}{list(first)}){far or _stored(marked, program)}",
            CAUSES[
                "stores-diagonal" if diagonal else "stores-outside" if outside else
                "columns-of-a-warp" if own else cause
            ],
            key=("output", output.name), buffer=output.name,
        )  # fmt: skip


def _stored(marked: list[Marked], program: Program) -> str:
    """`; line 12 stores it`, if the program's stores to global memory are those of one or two lines."""
    stores = [row for row, i in program.by_row.items() if stores_globally(i)]
    lines = list(dict.fromkeys(line_of(program, row) for row in stores))
    if len(marked) > 1 or not 0 < len(lines) < 3:
        return ""
    return f"; {lines_text(lines)} store{'s' * (len(lines) == 1)} it"


def stores_globally(instr) -> bool:
    """Whether the instruction stores to global memory: the first state space of a copy is its target."""
    spaces = [mod for mod in instr.mods if mod.partition("::")[0] in ("global", "shared")]
    return instr.op in ("st", "red", "atom", "cp") and spaces[:1] == ["global"]


def _same_tile_instead(output: Marked, reporter: Reporter) -> None:
    """CTAs that store one tile, with the same values, become an error if other elements were never
    written.
    """
    for finding in reporter.by_identity.values():
        if finding.evidence.get("equal") == output.name and finding.evidence["cause"] == "same-tile":
            finding.severity = "error"
            finding.message += f", and other elements of {output.name} were never written"


def _tiles_too_many(output: Marked, reporter: Reporter) -> None:
    """If the whole output is written, CTAs that store one tile have more tiles than the output has."""
    for finding in reporter.by_identity.values():
        if finding.severity != "error" or finding.evidence.get("cause") != "same-tile":
            continue
        if str(finding.evidence.get("place", "")).startswith(f"{output.name} + "):
            message = f"{finding.message}, although all of {output.name} is written: there are too many tiles"
            reporter.blame(finding, CAUSES["tiles-too-many"], message)


def _added_to(output: Marked, reporter: Reporter) -> None:
    """Stores that add to an output become an error if it holds a NaN: adding to the mark gives another
    NaN.
    """
    for finding in reporter.by_identity.values():
        if finding.evidence.get("adds") == output.name and np.isnan(output.array.astype(np.float32)).any():
            finding.severity = "error"
            del finding.evidence["adds"]


def forget_noted(reporter: Reporter) -> None:
    """Drops findings noted for stores past the edge of an output, or that add to it: they explained
    nothing.
    """
    for identity, finding in list(reporter.by_identity.items()):
        if finding.evidence.get("edge") or finding.evidence.get("adds"):
            del reporter.by_identity[identity]


def _columns_of_warps(left: np.ndarray) -> str:
    """`: rows 0 to 31 have columns 0 to 31 alone, ..` if each warp's rows have columns of their own, the
    same in each tile of 128 rows, which together cover all columns; else "".
    """
    if left.ndim != 2 or left.shape[0] % _TILE:
        return ""
    rows = ~left.reshape(-1, _TILE // _WARP, _WARP, left.shape[1])
    every = rows[0, :, 0]  # of each warp, which columns are written
    if (rows != every[None, :, None]).any() or (every.sum(0) != 1).any() or not every.any(1).all():
        return ""
    spans = [(int(np.flatnonzero(one)[0]), int(np.flatnonzero(one)[-1])) for one in every]
    told = [
        f"rows {w * _WARP} to {w * _WARP + _WARP - 1} have columns {a} to {b}"
        for w, (a, b) in enumerate(spans)
    ]
    return f": {told[0]} alone, {told[1]}, and so on, a warp each"


def _where(stores) -> str:
    """`; TMA stores lie outside of D, from column 0, row 32768 on (line 12)`."""
    line = stores.where.get("line")
    return f"; {stores.message}{f' (line {line})' if line else ''}"


def _none_written(output: Marked, outside: list, reporter: Reporter) -> None:
    """Reports an output of which nothing is written, because its TMA stores lie outside of it."""
    stores = next((f for f in outside if f.evidence.get("tensor") == output.name), None)
    if stores is None:
        return
    message = f"{output.name}: nothing of it was written; {stores.message}"
    key = ("output", output.name)
    reporter.add("uninitialized", "error", message, CAUSES["stores-past"], key=key, buffer=output.name)


def _blocks(left: np.ndarray) -> tuple[str, str]:
    """`, rows 128 to 255 of every 256`, and the cause that such blocks have; "" for any other pattern.

    left: bool (M, N); an array with another number of axes gets no such text.
    """
    for axis, name in enumerate(("rows", "columns")) if left.ndim == 2 else ():
        whole = left.all(axis=1 - axis)
        if not (left == np.expand_dims(whole, 1 - axis)).all():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate(([False], whole, [False])).astype(np.int8)))
        starts, ends = edges[::2], edges[1::2]
        text = f", {name} {starts[0]} to {ends[0] - 1}"
        if len(starts) == 1:
            return text, "first-tiles" if starts[0] and ends[0] == whole.size else "incomplete-output"
        if len(set(ends - starts)) == len(set(np.diff(starts))) == 1:
            return f"{text} of every {starts[1] - starts[0]}", "left-blocks"
        return f"{text} and others", "incomplete-output"
    corner = _corner(left)
    return corner if corner[0] else _last_tile(left)


def _corner(left: np.ndarray) -> tuple[str, str]:
    """`, rows 0 to 127 of columns 0 to 127`: one block in the first corner, with whole tiles around it."""
    if left.ndim != 2 or not left[0, 0]:
        return "", "incomplete-output"
    rows, columns = (int(np.argmin(side)) for side in (left[:, 0], left[0]))
    if rows % _TILE or columns % _TILE or left[:rows, :columns].sum() != left.sum():
        return "", "incomplete-output"
    return f", rows 0 to {rows - 1} of columns 0 to {columns - 1}", "first-left-out"


def _last_tile(left: np.ndarray) -> tuple[str, str]:
    """`, rows 128 to 255 of columns 256 to 383`: one block in the last corner, with whole tiles around it."""
    if left.ndim != 2 or _corner(left[::-1, ::-1])[1] != "first-left-out":
        return "", "incomplete-output"
    row, column = (int(np.argmax(side)) for side in (left[:, -1], left[-1]))
    rows, columns = left.shape
    if rows % (rows - row) or columns % (columns - column):  # not a whole tile
        return "", "incomplete-output"
    return f", rows {row} to {rows - 1} of columns {column} to {columns - 1}", "last-left-out"
