"""What orders what, as data from data/orders.toml. The handbook and the slides show this table."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tirxlab.rubric import DATA, tomllib


@dataclass(frozen=True)
class Order:
    """One row: nothing orders `then` after `first` unless all of `between` is written (Markdown)."""

    first: str
    then: str
    between: str
    left_out: tuple[str, ...]  # the bug corpus's mistakes that leave out a part of `between`


@functools.cache
def load_orders() -> tuple[Order, ...]:
    """All rows, in the order of the table."""
    with open(DATA / "orders.toml", "rb") as file:
        rows = tomllib.load(file)["order"]
    return tuple(Order(row["first"], row["then"], row["between"], tuple(row["left_out"])) for row in rows)


def markdown() -> str:
    """The table as the handbook shows it."""
    rows = [f"| {order.first} | {order.then} | {order.between} |" for order in load_orders()]
    return "\n".join(["| First | then | What you write between |", "|---|---|---|", *rows])
