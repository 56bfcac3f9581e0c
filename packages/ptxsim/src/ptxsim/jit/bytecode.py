"""Numbers shared by the compiled main loop and Python: table columns, control words, reasons to return.

Each group is an enumeration. Compiled code and hot Python code use the members as plain integers of this
module (`bytecode.SP_PC`), which `_publish` defines.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...  # the names that _publish defines


class Column(IntEnum):
    """Columns of a row of bytecode (lowering/emit.py). The enumerations below rename the columns for rows
    that are not scalar operations.
    """

    OP = 0  # an Operation, or the number of a scalar operation from FIRST_SCALAR on
    DST0 = 1  # slot of the destination
    SRC0 = 2  # slots of the sources
    SRC1 = 3
    SRC2 = 4
    SRC3 = 5
    GUARD = 6  # code of the guard predicate: 2 * slot + negated
    IMM = 7  # BRA: target row; COLD: number of the operation; CALL: address of its code; else an offset
    DST1 = 8  # slot of the second destination
    REJOIN = 9  # BRA, BRX: row at which the lanes of a branch meet again
    SRC4 = 10
    SRC5 = 11


class AccessColumn(IntEnum):
    """Columns of rows LD and ST."""

    ACCESS_LIST = Column.DST0  # start of the list of registers
    ACCESS_ADDRESS = Column.SRC0  # slot of the address
    ACCESS_ELEMENTS = Column.SRC1  # per lane
    ACCESS_WIDTH = Column.SRC2  # bytes of an element
    ACCESS_EXTEND = Column.SRC3  # LD: bits to sign-extend to
    ACCESS_SPACE = Column.DST1  # state space (isa/address_map.py)
    ACCESS_WHOLE = Column.SRC4  # 1 if there is vector code for a full warp


class BraColumn(IntEnum):
    """Columns of rows BRA."""

    BRA_EARLY = Column.DST0  # lanes that need no split of their own: 0 (none), TAKEN or OTHERS


TAKEN, OTHERS = 1, 2  # lanes that jump to the meeting point; lanes that fall through to it


class BrxColumn(IntEnum):
    """Columns of rows BRX."""

    BRX_INDEX = Column.DST0  # slot of the index
    BRX_TABLE = Column.SRC0  # start of the list of targets
    BRX_TARGETS = Column.SRC1  # number of targets


class UnitColumn(IntEnum):
    """Columns of rows UNIT; all but UNIT_FORM only of forms FAST_ISSUE and FAST_EITHER."""

    UNIT_FORM = Column.DST1  # 0, ONLY_OBSERVED, FAST_ISSUE, or a fast form (units/registry.py)
    UNIT_LIST = Column.DST0  # start of the list of slots that the instruction reads
    UNIT_SLOTS = Column.SRC1  # number of registers in this list
    UNIT_PREDICATES = Column.SRC2  # number of predicates, which follow the registers


class CalledColumn(IntEnum):
    """Columns of rows UNIT, FAST_CALLED and FAST_EITHER; IMM is the address of the code (jit/called.py)."""

    CALLED_BLOCK = Column.SRC0  # address of the code's parameters (called.ParameterBlock)
    CALLED_HEARD = Column.SRC3  # 1 if the loop calls the code with observers, too


class Operation(IntEnum):
    """Kinds of rows; scalar operations follow, from number FIRST_SCALAR on."""

    EXIT = 1
    BRA = 2
    JOIN = 3
    BRX = 4
    UNIT = 5  # a unit instruction: its handler runs in Python unless there is a fast form
    COLD = 6  # a scalar operation that is compiled on first use
    LD = 7
    ST = 8
    CALL = 9  # a COLD operation after it has been compiled


class SplitColumn(IntEnum):
    SP_PC = 0
    SP_MASK = 1
    SP_STATE = 2  # a SplitState
    SP_GROUP = 3  # group of lanes that will meet again, -1 for none
    SP_WARP = 4


class SplitState(IntEnum):
    FREE = 0
    RUNNABLE = 1
    BLOCKED = 2


class GroupColumn(IntEnum):
    """Columns of a group: lanes that diverged at a branch and will meet again at one row."""

    G_LIVE = 0
    G_REJOIN = 1
    G_NEED = 2
    G_ARRIVED = 3
    G_PARENT = 4


class SegmentColumn(IntEnum):
    """Columns of a segment: an array in global memory."""

    SEG_BASE = 0
    SEG_END = 1
    SEG_HOST = 2
    SEG_LOGGED = 3  # whether accesses are reported to observers


class CtaColumn(IntEnum):
    CT_RANK = 0
    CT_SHARED = 1  # host address of its shared memory


class BarrierColumn(IntEnum):
    """Columns of an mbarrier of the cluster (machine/mbarrier.py)."""

    MB_PLACE = 0  # its address in the .shared::cluster window
    MB_LIVES = 1  # 1: initialised, and not invalidated since
    MB_EXPECTED = 2  # arrivals that a phase needs
    MB_PENDING = 3  # arrivals still pending in this phase
    MB_TX = 4  # tx-count: bytes expected and not yet delivered
    MB_PHASE = 5  # completed phases
    MB_ANNOUNCED = 6  # bytes expected in this phase
    MB_DELIVERED = 7  # bytes delivered in this phase
    MB_TOLD = 8  # the phase that sleeping splits have been told of
    MB_MAKER = 9  # thread of the cluster that initialised it


class TmemColumn(IntEnum):
    """Columns of the table of the CTAs' tensor memories."""

    TM_CELLS = 0  # host address of the cells, row by row
    TM_OWNER = 1  # host address of the owners: the allocation that holds each TMEM column, 0 for none


class LogColumn(IntEnum):
    """Columns of the log for observers: one access of one lane."""

    LOG_ROW = 0
    LOG_THREAD = 1
    LOG_PLACE = 2  # a generic address
    LOG_SIZE = 3  # 2 * bytes + (it is a write) + the flags of a store, LOG_SAME .. LOG_OPEN


class Control(IntEnum):
    """Control words: inputs and results of a call of the main loop."""

    SPLIT = 0  # the split to run; afterwards the one that stopped
    BUDGET = 1  # instructions that it may run
    EXECUTED = 2  # warp instructions so far
    WARPS_PER_CTA = 3
    CLUSTER_SIZE = 4
    SHARED_LIMIT = 5  # end of a CTA's shared memory
    LOCAL_PTR = 6
    LOCAL_BYTES = 7  # per thread
    LAST_SEGMENT = 8  # segment of global memory where the search starts
    PLACE = 9  # result of translate(), or of reach()
    FAULT_KIND = 10
    FAULTS = 11  # number of lanes whose access was illegal; then kind, lane and address of the first
    FIRST_KIND = 12
    FAULT_LANE = 13
    FAULT_ADDRESS = 14
    LOG_ON = 15  # whether there are observers
    LOG_USED = 16
    UNIT_MASK = 17  # lanes for which the guard of the unit instruction is true
    EXITED = 18  # lanes that have left the kernel
    CODE_PTR = 19
    R_PTR = 20  # register files of the warps
    R_STRIDE = 21
    P_PTR = 22  # predicate files
    P_STRIDE = 23
    SP_PTR = 24
    G_PTR = 25
    SEG_PTR = 26
    CT_PTR = 27
    LOG_PTR = 28
    LISTS_PTR = 29
    ROWS = 30
    LISTS = 31
    SPLITS = 32
    SEGMENTS = 33
    LOG_ROOM = 34
    BATCH = 35  # splits in the batch; 0: run SPLIT alone
    BATCH_PTR = 36
    ALIVE_PTR = 37  # lanes of each warp that have not exited
    BARRIERS = 38  # rows of the table of mbarriers
    BARRIER_PTR = 39
    ISSUED = 40  # number of queued instructions: their operands are stored for their unit
    ISSUED_PTR = 41
    FAST_DONE = 42  # unit instructions done without Python
    ISSUES = 43  # how many instructions may be queued before they are handed to their unit
    ELECTED = 44  # elect.sync elects the highest member up to this lane
    EAGER = 45  # whether asynchronous work completes at once
    TENSOR_OPERATIONS = 46  # done by called code since Python last looked
    CHANGED = 47  # words of memory that atomics of called code have changed since Python last looked
    MARKED = 48  # wgmma accumulators whose registers hold marks because an instruction on them is pending
    LOCAL_WRITTEN = 49  # address of a flag for each byte of local memory, if there are observers
    HAPPENED = 50  # compiled code has done something that waiting splits may wait for
    PHASES_DONE = 51  # phases that compiled code has completed since Python last looked
    BARRIER_ROOM = 52  # capacity of the table of mbarriers in rows
    MAPS = 53  # tensor maps known to compiled code (machine/map_table.py)
    MAPS_PTR = 54
    COPIES = 55  # copies with these maps since Python last looked
    COPIES_PTR = 56
    TMEM_PTR = 57  # table of the CTAs' tensor memories
    LEFT = 58  # lanes of a batch have left the kernel since Python last looked
    DRY = 59  # called code skips the arithmetic of products, to count work only
    REMADE = 60  # compiled code has initialised or invalidated mbarriers since Python last looked
    FOLLOWS = 61  # whether a split created by a branch may run as soon as the split before it has joined
    FOLLOWED = 62  # how many splits have done so
    PARTS = 63  # number of parts of the access log, one per such split; their ends follow from PARTS_FIRST on
    NEW_COUNT = 64  # number of splits created by branches; their numbers follow from NEW_FIRST on
    NEW_FIRST = 65
    PARTS_FIRST = 129


class ReturnReason(IntEnum):
    """Why the main loop returned."""

    REASON_BUDGET = 0
    REASON_UNIT = 1
    REASON_COLD = 2
    REASON_FAULT = 3  # or the log of accesses is full
    REASON_EXIT = 4
    REASON_GONE = 5  # the split has joined another
    REASON_BAD_INDEX = 6  # of brx.idx
    REASON_STANDS = 7  # no split of the batch can continue without Python


def _publish(*tables: type[IntEnum]) -> None:
    """Defines the members of enumerations as plain integers of this module, which are constants for numba."""
    globals().update({member.name: int(member) for table in tables for member in table})


ROW_COLUMNS = (Column, AccessColumn, BraColumn, BrxColumn, UnitColumn, CalledColumn)
_publish(*ROW_COLUMNS, Operation, SplitColumn, SplitState, GroupColumn, SegmentColumn, CtaColumn)
_publish(BarrierColumn, TmemColumn, LogColumn, Control, ReturnReason)

COLUMNS = len(Column)
OPERAND_COLUMNS = {member.name.lower(): int(member) for table in ROW_COLUMNS for member in table}
FIRST_SCALAR = 16
LOG_SIZE_MASK = (1 << 40) - 1
LOG_SAME = 1 << 40  # it leaves memory unchanged
LOG_AGAIN = 1 << 41  # an earlier lane stores to this place in the same instruction
LOG_OPEN = 1 << 42  # it is the last to do so, and an earlier one has stored another value
MOST_PARTS = 256
CONTROL_WORDS = int(Control.PARTS_FIRST) + MOST_PARTS
FULL = 0xFFFF_FFFF  # all lanes
TURN = 16 * 2520  # instructions of a split before others get a turn; divisible by most polling loops' lengths
MOST_TOGETHER = 256  # barriers that a batch may pass before Python checks whether it is in an endless loop

# reasons after which a batch continues with its next split
QUIET_REASONS = tuple(int(ReturnReason[f"REASON_{name}"]) for name in ("UNIT", "BUDGET", "GONE", "EXIT"))
SPLIT_COLUMNS, GROUP_COLUMNS, SEG_COLUMNS = len(SplitColumn), len(GroupColumn), len(SegmentColumn)
CT_COLUMNS, LOG_COLUMNS = len(CtaColumn), len(LogColumn)
ROW_BYTES, SEG_BYTES, CT_BYTES = 8 * COLUMNS, 8 * SEG_COLUMNS, 8 * CT_COLUMNS  # of one row of a table
LOG_BYTES, SPLIT_BYTES = 8 * LOG_COLUMNS, 8 * SPLIT_COLUMNS

# UNIT_FORM. ONLY_OBSERVED: does nothing without observers (fences, hints). For the other forms, the main loop
# does the work: FAST_ISSUE queues the operands for a unit, FAST_CALLED calls compiled code by its address,
# FAST_EITHER tries the call and else queues, and forms from FIRST_FAST on are part of it (units/registry.py).
ONLY_OBSERVED, FAST_ISSUE, FAST_CALLED, FAST_EITHER, FIRST_FAST = range(1, 6)

# a batch: the splits that one call of the main loop runs, and the state of each: not in the batch, running,
# waiting for something that Python must do, out of instructions, or gone
BATCH_LIST, BATCH_STATE = range(2)
ABSENT, MOVING, STANDS, PAUSED, GONE = range(5)
MB_COLUMNS, TM_COLUMNS = len(BarrierColumn), len(TmemColumn)
# columns of a queued instruction; LOGGED: number of earlier accesses in the log; the values of the slots that
# the instruction reads follow from VALUES on
ISSUE_ROW, ISSUE_SPLIT, ISSUE_MASK, ISSUE_LOGGED, ISSUE_VALUES = range(5)
ISSUE_MOST = 14  # values of one instruction; tcgen05.mma has 13
ISSUE_ROOM, ISSUE_COLUMNS = 16, ISSUE_VALUES + ISSUE_MOST
BARRIER_BYTES, ISSUE_BYTES = 8 * MB_COLUMNS, 8 * ISSUE_COLUMNS
