"""The simulated address space: state spaces, their windows, and kinds of faults."""

# state spaces of a load or store
SPACE_GLOBAL, SPACE_SHARED, SPACE_CLUSTER, SPACE_LOCAL, SPACE_GENERIC = range(5)
SPACES = {  # spelling -> space; generic has no word; constants and parameters are in global memory
    **dict.fromkeys(("global", "const", "param"), SPACE_GLOBAL),
    **dict.fromkeys(("shared", "shared::cta"), SPACE_SHARED),
    **{"shared::cluster": SPACE_CLUSTER, "local": SPACE_LOCAL},
}

# address windows. A shared address contains the CTA's rank in the cluster at RANK_SHIFT, so that a CTA's own
# addresses are also valid as shared::cluster addresses; the system reserves the first 1 KB of the window.
SHARED_BASE, SHARED_END = 1 << 40, (1 << 40) + (1 << 32)
LOCAL_BASE, LOCAL_END = 1 << 41, (1 << 41) + (1 << 32)
SHORT_BASE, SHORT_END = 1 << 30, 1 << 32  # parameters and constants: addresses fit LLVM's 32-bit pointers
GLOBAL_BASE = 0x7000_0000_0000
PARAM_WINDOW = 0x4000_0000_0000  # kernel parameters: cvta.param adds this to their address in .param space
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1
WINDOW_MASK = 0xFFFF_FFFF  # shared and local addresses have 32 bits
SHARED_START = 1024


def shared_place(address):
    """(CTA rank, offset) of an address in the shared window, or of a place (a generic address)."""
    return (address & WINDOW_MASK) >> RANK_SHIFT, address & OFFSET_MASK


def before_shared(address) -> int:
    """How many bytes an address in the shared window lies before shared memory: a negative offset wraps round
    to the last rank, which no cluster has. 0 if it does not.
    """
    rank, offset = shared_place(address)
    return max(0, OFFSET_MASK + 1 - offset + SHARED_START) if rank == WINDOW_MASK >> RANK_SHIFT else 0


def is_shared(place):
    """Whether a generic address (a place) is in shared memory."""
    return (SHARED_BASE <= place) & (place < SHARED_END)


def is_local(place):
    """Whether a generic address (a place) is in a thread's local memory."""
    return (LOCAL_BASE <= place) & (place < LOCAL_END)


def is_global(place: int) -> bool:
    """Whether a place is in neither window of a CTA. Host addresses, below GLOBAL_BASE, are global, too."""
    return not (is_shared(place) or is_local(place))


# kinds of faults of an access
FAULT_BOUNDS, FAULT_MISALIGNED, FAULT_OTHER_CTA, FAULT_LOCAL = range(1, 5)
IN_PARAM_SPACE = "by an address in .param space, which only cvta.param makes generic (PTX ISA 9.7.9.20)"
CONVERT = "convert the parameter's address first: cvta.param.u64"
