"""`cached_property`, which type checkers see as a property, as the protocols of views.py require."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builtins import property as cached_property
else:
    from functools import cached_property as cached_property

__all__ = ["cached_property"]
