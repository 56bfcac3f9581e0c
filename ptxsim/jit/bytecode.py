"""Numbers shared by the compiled main loop and Python: columns of its arrays and reasons to return."""

# columns of a bytecode row (lowering/emit.py) and its operation codes
OP, D, A, B, C, E, GUARD, IMM, AUX, RPC, F, X = range(12)
COLUMNS = 12
EXIT, BRA, JOIN, BRX, UNIT, COLD, LD, ST, FOLD = range(1, 10)
FIRST_SCALAR = 16

# splits, groups, segments, CTAs
SP_PC, SP_MASK, SP_STATE, SP_GROUP, SP_WARP = range(5)
FREE, RUNNABLE, BLOCKED = range(3)
G_LIVE, G_RPC, G_NEED, G_ARRIVED, G_PARENT = range(5)
SEG_BASE, SEG_END, SEG_HOST, SEG_LOGGED = range(4)
CT_RANK, CT_SHARED = range(2)
LOG_ROW, LOG_THREAD, LOG_PLACE, LOG_SIZE = range(4)
# LOG_SIZE holds 2 * bytes + (is it a write?) + (does it write what is already there?) * LOG_SAME
LOG_SAME, LOG_SIZE_MASK = 1 << 40, (1 << 40) - 1

# control words
(
    SPLIT,
    BUDGET,
    EXECUTED,
    WARPS_PER_CTA,
    CLUSTER_SIZE,
    SHARED_LIMIT,
    LOCAL_PTR,
    LOCAL_BYTES,
    LAST_SEGMENT,
    PLACE,
    FAULT_KIND,
    FAULTS,
    FIRST_KIND,
    FAULT_LANE,
    FAULT_ADDRESS,
    LOG_ON,
    LOG_USED,
    UNIT_MASK,
    EXITED,
    CODE_PTR,
    R_PTR,
    R_STRIDE,
    P_PTR,
    P_STRIDE,
    SP_PTR,
    G_PTR,
    SEG_PTR,
    CT_PTR,
    LOG_PTR,
    LISTS_PTR,
    ROWS,
    LISTS,
    SPLITS,
    SEGMENTS,
    LOG_ROOM,
    BATCH,
    BATCH_PTR,
    ALIVE_PTR,
    PHASES,
    PHASE_PTR,
    ISSUED,
    ISSUED_PTR,
    FAST_DONE,
    NEW_COUNT,
    NEW_FIRST,
) = range(45)
CONTROL_WORDS = NEW_FIRST + 64
MOVE_BYTES = 16  # per lane, of a load and the store behind it that are done at once
FULL = 0xFFFF_FFFF  # all lanes
TURN = 16 * 2520  # instructions a split runs before others get a turn; most polling loops divide it

(
    REASON_BUDGET,
    REASON_UNIT,
    REASON_COLD,
    REASON_FAULT,
    REASON_EXIT,
    REASON_GONE,
    REASON_BAD_INDEX,
    REASON_STANDS,
) = range(8)
QUIET_REASONS = (REASON_UNIT, REASON_BUDGET, REASON_GONE)  # a batch goes on with its next split
ROW_BYTES = 8 * COLUMNS
SEG_BYTES, CT_BYTES, LOG_BYTES = 8 * 4, 8 * 2, 8 * 4  # a row of the tables of segments, CTAs, log entries
SPLIT_BYTES, PHASE_BYTES, ISSUE_BYTES = 8 * 5, 8 * 2, 8 * 3  # ... of splits, mbarriers, issued instructions

# AUX of a UNIT row: it does nothing without observers (fences, hints); or what the main loop does by itself
# without them: leave the operands to another unit, or one of the fast forms (units/registry.py)
ONLY_OBSERVED, FAST_ISSUE, FIRST_FAST = range(1, 4)

# a batch: splits that one call of the main loop runs, and where each is: not in it, moving, standing at
# something that Python must do, out of instructions, or gone
BATCH_LIST, BATCH_STATE = range(2)
ABSENT, MOVING, STANDS, PAUSED, GONE = range(5)
PHASE_PLACE, PHASE_NUMBER = range(2)  # table of mbarriers
PHASE_ROOM = 64  # mbarriers of a cluster that the main loop knows
ISSUE_ROW, ISSUE_SPLIT, ISSUE_MASK = range(3)  # table of instructions that left their operands behind
ISSUE_ROOM = 16
