"""Runs clusters of a grid one after the other without Python between them: for a short cluster, starting and
ending it in Python takes ten times as long as running it.
"""

# ruff: noqa: F405
# pyright: reportUndefinedVariable=false
# ruff and pyright cannot see the names that bytecode._publish defines; numba refuses names that do not exist
from ptxsim.jit.bytecode import *  # noqa: F403
from ptxsim.jit.compiled import compiled
from ptxsim.jit.intrinsics import call_loop

NONE_STANDS = -1
MOST = 1_000_000  # instructions, some tenths of a second; then Python checks time limits and Ctrl-C


@compiled()
def run_each(loop, control, files, tables, memory, start, slots, values, first):
    """Runs the clusters that `values` describes, from row `first` on, each from start to end.

    loop: address of the main loop's code. files: registers, predicates. tables: splits, groups, living,
    batch. memory: shared, local, local_written. start: initial registers, predicates, splits and living of a
    cluster. values[i, k, r]: initial value of the register in slots[k] in CTA r of cluster i.
    Returns (the first row whose cluster has not ended; NONE_STANDS, or the reason why the main loop stopped
    there; instructions executed before that cluster). A cluster that needs Python has run until it needs it,
    and its batch is left as it was then. After MOST instructions no further cluster is started.
    """
    registers, predicates = files
    splits, groups, living, batch = tables
    shared, local, local_written = memory
    fresh, predicates_then, splits_then, living_then = start
    words = control.ctypes.data
    limit = control[EXECUTED] + MOST
    for i in range(first, len(values)):
        before = control[EXECUTED]
        if before > limit:
            return i, NONE_STANDS, before
        for w in range(len(registers)):
            for s in range(len(fresh)):
                registers[w, s, :] = fresh[s, 0]
            for k in range(len(slots)):
                registers[w, slots[k], :] = values[i, k, w // control[WARPS_PER_CTA]]
        predicates[:] = predicates_then
        splits[:] = splits_then
        groups[:] = 0
        living[:] = living_then
        shared[:] = 0xFF
        local[:], local_written[:] = 0xFF, 0
        _admit_all(batch, living, control)
        reason = call_loop(loop, words)
        if reason != REASON_STANDS or not _over(batch, control):
            return i, reason, before
    return len(values), NONE_STANDS, control[EXECUTED]


@compiled()
def _admit_all(batch, living, control):
    """Creates the batch of a cluster whose warps are all at their first instruction."""
    batch[BATCH_STATE, :] = ABSENT
    count = 0
    for w in range(len(living)):
        if living[w]:
            batch[BATCH_LIST, count] = w * 32
            batch[BATCH_STATE, w * 32] = MOVING
            count += 1
    control[BATCH], control[NEW_COUNT], control[BUDGET], control[LEFT] = count, 0, TURN, 0


@compiled()
def _over(batch, control):
    """Whether all warps have ended and left nothing for Python to process; the batch is then cleared."""
    for j in range(control[BATCH]):
        if batch[BATCH_STATE, batch[BATCH_LIST, j]] != GONE:
            return False
    if control[ISSUED] or control[TENSOR_OPERATIONS] or control[FAULTS] or control[LOG_USED]:
        return False
    control[BATCH] = control[FAST_DONE] = control[HAPPENED] = control[CHANGED] = 0
    return True
