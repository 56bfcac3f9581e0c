"""`cached_property`, that a type checker takes for a property, as the protocols of views.py have them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builtins import property as cached_property
else:
    from functools import cached_property as cached_property

__all__ = ["cached_property"]
