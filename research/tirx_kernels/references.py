"""References of our own, for kernels whose test compares with a package that is not here."""

from __future__ import annotations

TABLE: dict = {}
