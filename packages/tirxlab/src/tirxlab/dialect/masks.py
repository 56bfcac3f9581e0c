"""Masks of the CTAs that a tcgen05.commit signals (PTX ISA 9.7.16.9.4)."""

from tvm.tirx import IntImm


def signalled(where: str, mask) -> None:
    """ValueError for a mask with a single bit other than CTA 0's: TVM compiles it to a commit without a mask,
    which signals the issuing thread's own CTA.
    """
    bits = int(mask) if isinstance(mask, int | IntImm) and not isinstance(mask, bool) else 0
    if bits > 1 and bits.bit_count() == 1:
        raise ValueError(
            f"{where}: cta_mask={bits} names CTA {bits.bit_length() - 1} alone, and TVM compiles a mask of "
            "one bit to a commit at the own CTA's barrier: name every CTA that waits, the own one too (3 for "
            "CTAs 0 and 1)"
        )
