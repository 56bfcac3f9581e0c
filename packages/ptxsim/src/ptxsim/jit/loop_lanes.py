"""Loads and stores lane by lane, for any lanes and any addresses, with detection of faults.

Arguments are named as in loop_template.py: `c` is a bytecode row, `row` its address and `pc` its number;
`registers` is the address of the warp's register file.
"""

# ruff: noqa: F405
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
import numpy as np

from ptxsim.isa.address_map import LOCAL_BASE
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.intrinsics import *  # noqa: F403
from ptxsim.jit.loop_log import all_apart, first_at, flags_of, held_already, last_at, met_with
from ptxsim.jit.loop_memory import read_element, u64, write_element
from ptxsim.jit.translate import is_local, translate


@inner
def fault(words, lane, address):
    if words[FAULTS] == 0:
        words[FIRST_KIND] = words[FAULT_KIND]
        words[FAULT_LANE] = lane
        words[FAULT_ADDRESS] = address
    words[FAULTS] += 1


@inner
def own_bytes(words, thread, size, write):
    """Whether an access is to local memory and not reported: only loads of unwritten bytes are. Marks bytes
    of a store as written.
    """
    if not is_local(words[PLACE]):
        return False
    flags = words[LOCAL_WRITTEN] + thread * words[LOCAL_BYTES] + words[PLACE] - LOCAL_BASE
    for b in range(size):
        if write:
            store8(u64(flags + b), u64(1))
        elif load8(u64(flags + b)) == 0:
            return False
    return True


@inner
def log_access(log, words, pc, thread, size, write):
    if words[PLACE] != 0 and not own_bytes(words, thread, size, write):
        n = words[LOG_USED]
        log[n, LOG_ROW] = pc
        log[n, LOG_THREAD] = thread
        log[n, LOG_PLACE] = words[PLACE]
        log[n, LOG_SIZE] = 2 * size + write
        words[LOG_USED] = n + 1


@inner
def load_lanes(c, m, w, cta, lists, registers, segments, ctas, log, words, pc):
    base = c[ACCESS_ADDRESS]
    count = c[ACCESS_ELEMENTS]
    width = c[ACCESS_WIDTH]
    first = c[ACCESS_LIST]
    size = count * width
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[ACCESS_SPACE], w * 32 + l, cta, segments, ctas, words)
            if host == 0:
                fault(words, l, address)
            elif words[LOG_ON] != 0:
                log_access(log, words, pc, w * 32 + l, size, 0)
            for v in range(count):
                value = read_element(host + v * width, width, c[ACCESS_EXTEND]) if host != 0 else u64(0)
                set_lane_value(registers, np.int64(lists[first + v]), l, value)


@inner
def store_lanes(c, m, w, cta, lists, registers, segments, ctas, log, words, pc, row, control):
    base = c[ACCESS_ADDRESS]
    count = c[ACCESS_ELEMENTS]
    width = c[ACCESS_WIDTH]
    first = c[ACCESS_LIST]
    size = count * width
    apart = words[LOG_ON] == 0 or all_apart(registers, base, m)
    unchanged, met = 0, np.int64(0)  # unchanged: bits of lanes whose stores do not change memory
    for l in range(32):
        if (m >> l) & 1:
            address = np.int64(lane_value(registers, base, l)) + c[IMM]
            host = translate(address, size, c[ACCESS_SPACE], w * 32 + l, cta, segments, ctas, words)
            if host == 0:
                fault(words, l, address)
            else:
                if words[LOG_ON] != 0:
                    one = l if apart else first_at(registers, base, m, l)
                    last = l if apart else last_at(registers, base, m, l)
                    if one == l and held_already(row, registers, control, last, host):
                        unchanged |= 1 << l
                    flags = LOG_SAME * (unchanged >> one & 1) | flags_of(met, l, last)
                    met = met_with(met, row, registers, control, l, last)
                    log_access(log, words, pc, w * 32 + l, size, 1 + flags)
                for v in range(count):
                    write_element(
                        host + v * width, width, lane_value(registers, np.int64(lists[first + v]), l)
                    )
