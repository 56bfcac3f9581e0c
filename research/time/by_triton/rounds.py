"""The rounds: name -> their rows, at the round's sizes or (`small`) at sizes that ptxsim runs quickly."""

from __future__ import annotations

from collections.abc import Callable

from research.time.by_triton import drawn_products, listed
from research.time.by_triton.drawn_streams import drawn_streams
from research.time.by_triton.listed import unseen
from research.time.by_triton.row import Row


def first(small: bool) -> list[Row]:
    """The first kernels, and the second round's, which were the unseen half."""
    return [*listed.gemms(), *listed.attentions(), *listed.streams(), *listed.second()]


def third(small: bool) -> list[Row]:
    return unseen(listed.third())


def fourth(small: bool) -> list[Row]:
    products = listed.small_fourth_products() if small else listed.fourth_products()
    return unseen([*products, *listed.fourth_streams(small)])


def fifth(small: bool) -> list[Row]:
    """The rows drawn for the fifth round, or with DRAWN=6 in the environment for the sixth."""
    rows = [drawn_products.of_kind(kind, small) for kind in drawn_products.KNOWN]
    rows += drawn_products.new_products(small) + drawn_products.attentions(small)
    return unseen(rows + drawn_streams(small))


ROUNDS: dict[str, Callable[[bool], list[Row]]] = {
    "first": first, "third": third, "fourth": fourth, "fifth": fifth,
}  # fmt: skip
WITHOUT_SMALL = ("first", "third")
