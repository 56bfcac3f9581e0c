"""Tables of the slides whose content is kept elsewhere in the project: what orders what."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from tirxlab.explain.orders import load_orders


def orders_csv() -> str:
    """first, then, between: the rows of tirxlab/data/orders.toml."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [order.first, order.then, order.between] for order in load_orders()
    )
    return out.getvalue()


FIGURES: dict[str, Callable[[], str]] = {"orders.csv": orders_csv}
