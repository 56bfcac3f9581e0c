"""All tcgen05 instructions of a kernel take one cta_group (PTX ISA 9.7.16.2.1); ptxas names no line."""

from .state import state


def one_group(what: str, group) -> None:
    """ValueError if an instruction has a different cta_group than an earlier one in the kernel."""
    known = state().group
    if known is None:
        state().group = (group, what)
    elif isinstance(group, int) and known[0] != group:
        raise ValueError(
            f"{what} says cta_group={group}, {known[1]} before it cta_group={known[0]}: a kernel works with "
            "single CTAs (1) or with CTA pairs (2), the same in every tcgen05 instruction; "
            "2 in a kernel whose clusters have two CTAs"
        )
