"""The simulated address space: state spaces, their windows, and what can be wrong with an address."""

# state spaces of a load or store
SPACE_GLOBAL, SPACE_SHARED, SPACE_CLUSTER, SPACE_LOCAL, SPACE_GENERIC = range(5)
SPACES = {  # how they are spelled, generic by no word; constants and parameters lie in global memory
    **dict.fromkeys(("global", "const", "param"), SPACE_GLOBAL),
    **dict.fromkeys(("shared", "shared::cta"), SPACE_SHARED),
    **{"shared::cluster": SPACE_CLUSTER, "local": SPACE_LOCAL},
}

# address windows. A shared address carries its CTA's rank in the cluster at RANK_SHIFT, so that a CTA's own
# addresses are also right as shared::cluster addresses; the first 1 KB of the window belongs to the system.
SHARED_BASE, SHARED_END = 1 << 40, (1 << 40) + (1 << 32)
LOCAL_BASE, LOCAL_END = 1 << 41, (1 << 41) + (1 << 32)
GLOBAL_BASE = 0x7000_0000_0000
PARAM_WINDOW = 0x4000_0000_0000  # of kernel parameters: what cvta.param adds to their address in .param space
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1
WINDOW_MASK = 0xFFFF_FFFF  # shared and local addresses have 32 bits
SHARED_START = 1024


def shared_place(address):
    """(CTA rank, offset) of an address in the shared window, or of a place."""
    return (address & WINDOW_MASK) >> RANK_SHIFT, address & OFFSET_MASK


def is_shared(place):
    """Whether a generic address, or a place, lies in shared memory."""
    return (SHARED_BASE <= place) & (place < SHARED_END)


def is_local(place):
    """Whether a generic address, or a place, lies in a thread's local memory."""
    return (LOCAL_BASE <= place) & (place < LOCAL_END)


def is_global(place: int) -> bool:
    """Whether it lies in neither window of a CTA; memory at the host's own addresses is below GLOBAL_BASE."""
    return not (is_shared(place) or is_local(place))


# what is wrong with an access
FAULT_BOUNDS, FAULT_MISALIGNED, FAULT_OTHER_CTA, FAULT_LOCAL = range(1, 5)
IN_PARAM_SPACE = "by an address in .param space, which only cvta.param makes generic (PTX ISA 9.7.9.20)"
CONVERT = "convert the parameter's address before: cvta.param.u64"
