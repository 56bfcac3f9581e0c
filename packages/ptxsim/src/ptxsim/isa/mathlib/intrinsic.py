"""numba's `intrinsic`, typed for callers of the result, who do not pass the typing context."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")

    def intrinsic(function: Callable[Concatenate[Any, P], Any]) -> Callable[P, Any]: ...

else:
    from numba.core.extending import intrinsic as intrinsic
