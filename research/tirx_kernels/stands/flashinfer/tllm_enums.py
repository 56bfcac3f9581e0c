"""The enumeration under its other name."""

from flashinfer.quantization import SfLayout

__all__ = ["SfLayout"]
