"""The words about a wrong element of D whose way back through the run was followed (record.py)."""

from __future__ import annotations

import numpy as np

from tirxlab.explain.origins.chunks import place
from tirxlab.explain.origins.record import NOBODY, Cell, Element, Followed, Load, Origins, Stored

_SHOWN, _LOADS = 3, 4  # most rows or lines that are named; most loads


def told(run: Origins, element: Element) -> list[str]:
    """Lines about an element: what it should hold, what it holds instead, where to look. [] if its way back
    shows nothing wrong, or was lost.
    """
    followed, stored = run.followed[element], run.followed[element].stored
    if run.odd or stored is None:
        return []
    if stored.read is None or stored.cell is None:
        return _never_read(run, element, followed, stored)
    if followed.made and not _is_elsewhere(element, followed, stored):
        return _right_product(run, element, followed, stored)
    return _wrong_rows(run, element, stored) if stored.sum is not None else []


def _is_elsewhere(element: Element, followed: Followed, stored: Stored) -> bool:
    """Whether the number was read from the place in a product that this element has if the product's rows and
    columns are in the order of D's, while the right product was made only at other places.
    """
    if stored.sum is None or stored.cell is None:
        return False
    one = stored.sum.products[-1]
    usual = element[0] % len(one.a), element[1] % len(one.b)
    taken = stored.sum.row + stored.cell.lane, stored.cell.column - stored.sum.column
    return taken == usual and all(made.place != usual for made in followed.made)


# ---- nothing was read for it ----


def _never_read(run: Origins, element: Element, followed: Followed, stored: Stored) -> list[str]:
    """For a number written by a thread that has never read tensor memory."""
    if stored.thread == NOBODY or stored.reads:
        return []
    by = _line(stored.placed if stored.by_tma else stored.line)
    readers = {line for lines in followed.readers.values() for line in lines}
    others = f": it is read in other threads ({_lines(list(readers))}), and registers are each thread's own"
    return [
        f"{run.names[2]}[{element[0]}, {element[1]}] is written ({by}) by a thread that has read "
        f"nothing from tensor memory{others if readers else ''}"
    ]


# ---- the product that it wants was made ----


def _right_product(run: Origins, element: Element, followed: Followed, stored: Stored) -> list[str]:
    """For an element whose product was made, but another number was stored."""
    assert stored.cell is not None and stored.read is not None
    here = [made for made in followed.made if made.cluster == stored.cluster]
    near = [made for made in here if made.cell.rank == stored.cell.rank]
    if any(made.cell == stored.cell and made.is_in(stored.read.sums) for made in near):
        return []
    wanted = _wants(run, element)
    if not near:
        other = (here or followed.made)[0]
        places = ("another CTA of its cluster", "CTA") if here else ("another cluster", "cluster")
        return [
            f"{wanted}: {_line(other.line)} multiplies them in {places[0]} than the one that stores this "
            f"element ({_line(stored.line)})",
            f"  do the loads of a {places[1]} and its store take their rows and columns from one and the "
            "same tile, in the same order?",
        ]
    if stored.offered:
        return [f"{wanted}: {_has_both(stored)}", f"  {_look_behind(stored)}"]
    if any(made.cell == stored.cell for made in near):
        return [
            f"{wanted}: that product was in the place that {_line(stored.read.line)} reads for it, but in "
            f"another round of the tiles{_holds(run, stored)} in this one",
            "  do all warps and roles, the loads and the store too, take the same tile in the same round: "
            "where each begins (init), its next_tile(), its m_st and n_st?",
        ]
    made, read = near[-1], _line(stored.read.line)
    lanes = made.cell.column == stored.cell.column
    nobody = "" if followed.readers.get(made.cell) else ", and nothing reads it there"
    return [
        f"{wanted}: that product is in {_cell(made.cell, stored.cell)} ({_line(made.line)}){nobody}",
        f"  {read} reads {_cell(stored.cell, made.cell)} for it{_holds(run, stored)}: look at "
        + _other_cell(stored, _line(made.line), lanes),
    ]


def _other_cell(stored: Stored, product: str, lanes: bool) -> str:
    """Where to look if a number was read from another lane, or another column, than the one that holds it."""
    assert stored.read is not None
    put, read = _line(stored.placed if stored.by_tma else stored.line), _line(stored.read.line)
    if lanes:  # a warp reads its own lanes, whatever it does
        return (
            f"the row under which {put} puts it, at the lanes that {product} writes, and at the rows that it "
            "multiplies"
        )
    return (
        f"the columns that {product} writes and that {read} reads, at where {put} puts them, and at the rows "
        f"that {product} multiplies"
    )


def _holds(run: Origins, stored: Stored) -> str:
    """The product in the cell that was read, as the end of a sentence."""
    found = _multiplied(stored)
    if found is None:
        return ", where there is no product"
    return ", where " + " times ".join(_rows(run, side) for side in found[1]) + " is"


def _has_both(stored: Stored) -> str:
    read, cell = stored.offered[0]
    assert stored.cell is not None
    if cell == stored.cell:
        return (
            f"its thread has read that ({_line(read.line)}), but what it put in this place it has read from "
            "there in another round of the tiles"
        )
    return (
        f"its thread has read that, from {_cell(cell, stored.cell)} ({_line(read.line)}), but what it put in "
        f"this place comes from {_cell(stored.cell, cell)}"
    )


def _look_behind(stored: Stored) -> str:
    """The advice to look between the read and the store."""
    assert stored.read is not None
    first, last = _line(stored.read.line), _line(stored.placed if stored.placed else stored.line)
    store = f", and at which part of D {_line(stored.line)} stores" if stored.placed else ""
    offered, cell = stored.offered[0]
    again = offered.line == stored.read.line and cell != stored.cell
    columns = f"the columns that {first} reads in each round, at " if again else ""
    return (
        f"look at {columns}what happens to these registers from {first} to {last} (their index, the cast, "
        f"the order of these lines){store}"
    )


# ---- other rows were multiplied ----


def _wrong_rows(run: Origins, element: Element, stored: Stored) -> list[str]:
    found = _multiplied(stored)
    if found is None:
        return []
    lines, sides = found
    wrong = [i for i in (0, 1) if not _is_row(sides[i], i, element[i])]
    if not wrong:
        return []
    text = " times ".join(_rows(run, side) for side in sides)
    said = [f"{_wants(run, element)}, but {_lines(lines)} multiplies {text} for it"]
    missing = [i for i in wrong if (mine := _loads(run, i, stored)) and not _with_row(mine, element[i])]
    return said + [f"  {_look_for(run, i, element[i], stored, lines)}" for i in missing or wrong]


def _loads(run: Origins, matrix: int, stored: Stored) -> list[Load]:
    """Loads of a matrix by the cluster that stores the element."""
    return [load for load in run.loads if load.matrix == matrix and load.cluster == stored.cluster]


def _with_row(loads: list[Load], row: int) -> list[Load]:
    return [load for load in loads if load.rows[0] <= row < load.rows[1]]


def _multiplied(stored: Stored) -> tuple[list, tuple[np.ndarray, np.ndarray]] | None:
    """(lines of the products in the cell that was read, codes of the chunks multiplied into it, for A and B);
    None if the cell holds no product.
    """
    if stored.sum is None or stored.cell is None:
        return None
    products = stored.sum.products
    row, column = stored.sum.row + stored.cell.lane, stored.cell.column - stored.sum.column
    a, b = (np.concatenate(side) for side in ([p.a[row] for p in products], [p.b[column] for p in products]))
    return list(dict.fromkeys(p.line for p in products)), (a, b)


def _is_row(codes: np.ndarray, matrix: int, row: int) -> bool:
    return all(found is not None and found[:2] == (matrix, row) for found in map(place, codes.tolist()))


def _rows(run: Origins, codes: np.ndarray) -> str:
    """`row 128 of A`, or the parts of rows that the codes name."""
    found = dict.fromkeys(p[:2] if p else None for p in map(place, codes.tolist()))
    rows = [key for key in found if key is not None]
    if not rows:
        return "numbers that are in neither A nor B"
    if len(found) == 1:
        return f"row {rows[0][1]} of {run.names[rows[0][0]]}"
    more = ", .." if len(rows) > _SHOWN else ""
    text = ", ".join(f"{run.names[m]}[{row}]" for m, row in rows[:_SHOWN]) + more
    return f"parts of rows {text}" + (" and of neither A nor B" if None in found else "")


def _look_for(run: Origins, matrix: int, row: int, stored: Stored, lines: list) -> str:
    """The advice on where the right row is, if it was loaded."""
    name = run.names[matrix]
    smem = f"{name}'s buffer in shared memory"
    mine = _loads(run, matrix, stored)
    if right := _with_row(mine, row):
        at = _lines([load.line for load in right])
        return (
            f"row {row} of {name} is loaded as well ({at}): look at the part of {smem} that "
            f"{_lines(lines)} takes, and at where {at} puts it"
        )
    if mine:
        others = [*dict.fromkeys(f"{name}[{a}:{b}] ({_line(n)})" for n, _, (a, b), _ in mine)]
        shown = ", ".join(others[:_LOADS]) + (", .." if len(others) > _LOADS else "")
        return (
            f"no load of this cluster takes row {row} of {name}, but {shown}: look at its first row, and at "
            "whether the loads, the MMA and the store take the same tile in the same round"
        )
    return f"look at the rows of {name} that are copied into {smem}, and at the part that is multiplied"


# ---- words ----


def _wants(run: Origins, element: Element) -> str:
    A, B, D = run.names
    r, c = element
    return f"{D}[{r}, {c}] is row {r} of {A} times row {c} of {B}"


def _cell(cell: Cell, other: Cell) -> str:
    """A place in tensor memory, named as far as needed to tell it from `other`."""
    parts = [f"column {cell.column}"]
    if cell.lane != other.lane:
        parts.insert(0, f"lane {cell.lane}")
    return ", ".join(parts) + " of tensor memory"


def _line(line: int | None) -> str:
    return f"line {line}" if line else "the kernel"


def _lines(lines: list) -> str:
    known = sorted({line for line in lines if line})
    if len(known) < 2:
        return _line(known[0] if known else None)
    return "lines " + ", ".join(map(str, known[:_SHOWN])) + (", .." if len(known) > _SHOWN else "")
