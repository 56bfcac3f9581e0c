"""Shared-memory swizzles (PTX ISA 5.5.6): linear byte address -> physical byte address.

A mode is named by its span in bytes (0, 32, 64, 128), as in `TensorMap`; "128_atom32", "128_atom32_flip8" and
"128_atom64" are the 128 B swizzles that move pieces larger than 16 B. All of them XOR address bits into lower
address bits, so each is its own inverse and acts on absolute shared-memory addresses.
"""

from __future__ import annotations

Mode = int | str

# mode -> ((mask, shift), ...): address ^= (address >> shift) & mask
XORS: dict[Mode, tuple[tuple[int, int], ...]] = {
    0: (),
    32: ((0x10, 3),),
    64: ((0x30, 3),),
    128: ((0x70, 3),),
    "128_atom32": ((0x60, 2),),
    "128_atom32_flip8": ((0x60, 2), (0x08, 4)),
    "128_atom64": ((0x40, 1),),
}
SPAN = {mode: mode if isinstance(mode, int) else 128 for mode in XORS}  # bytes of one row of the pattern
PERIOD = {0: 16, 32: 256, 64: 512, 128: 1024, "128_atom32": 512, "128_atom32_flip8": 512, "128_atom64": 256}


def swizzle(address, mode: Mode, base: int = 0):
    """The physical byte address of a linear byte address (int or integer array, any shape).

    base: matrix base offset, 0-7: the pattern starts at a 128 B row with this number instead of row 0
    (PTX ISA 9.7.16.4.1). Raises ValueError for a mode that does not exist.
    """
    if mode not in XORS:
        raise ValueError(f"swizzle {mode!r} is not one of {tuple(XORS)}")
    row = address - (base << 7)
    for mask, shift in XORS[mode]:
        address = address ^ ((row >> shift) & mask)
    return address
