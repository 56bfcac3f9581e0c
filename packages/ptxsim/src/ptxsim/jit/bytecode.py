"""Numbers shared by the compiled main loop and Python: tables, control words, reasons to return.

Each is an enumeration. Compiled code and hot Python code use the members as plain integers of this module
(`bytecode.SP_PC`), which `_publish` makes of them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...  # what _publish makes


class Column(IntEnum):
    """One row of bytecode (lowering/emit.py). The tables below name the columns of rows that hold no scalar
    operation.
    """

    OP = 0  # an Operation, or the number of a scalar operation from FIRST_SCALAR on
    DST0 = 1  # slot of the destination
    SRC0 = 2  # slots of the sources
    SRC1 = 3
    SRC2 = 4
    SRC3 = 5
    GUARD = 6  # code of the guard predicate: 2 * slot + negated
    IMM = 7  # BRA: row of the target; COLD: number of the operation; CALL: its address; else an offset
    DST1 = 8  # slot of the second destination
    REJOIN = 9  # BRA, BRX: row at which the lanes of a branch meet again
    SRC4 = 10
    SRC5 = 11


class AccessColumn(IntEnum):
    """Rows LD and ST."""

    ACCESS_LIST = Column.DST0  # where the list of registers starts
    ACCESS_ADDRESS = Column.SRC0  # slot of the address
    ACCESS_ELEMENTS = Column.SRC1  # per lane
    ACCESS_WIDTH = Column.SRC2  # bytes of an element
    ACCESS_EXTEND = Column.SRC3  # LD: bits to sign-extend to
    ACCESS_SPACE = Column.DST1  # state space (isa/address_map.py)
    ACCESS_WHOLE = Column.SRC4  # 1 if there is vector code for a whole warp


class BraColumn(IntEnum):
    """Rows BRA."""

    BRA_EARLY = Column.DST0  # lanes that need no split of their own: 0 or one of these


TAKEN, OTHERS = 1, 2  # those that jump to where all meet; those that go on there


class BrxColumn(IntEnum):
    """Rows BRX."""

    BRX_INDEX = Column.DST0  # slot of the index
    BRX_TABLE = Column.SRC0  # where the list of targets starts
    BRX_TARGETS = Column.SRC1  # how many there are


class UnitColumn(IntEnum):
    """Rows UNIT; the first of all, the others of FAST_ISSUE and FAST_EITHER."""

    UNIT_FORM = Column.DST1  # 0, ONLY_OBSERVED, FAST_ISSUE, or a fast form (units/registry.py)
    UNIT_LIST = Column.DST0  # where the list of slots that the instruction reads starts
    UNIT_SLOTS = Column.SRC1  # how many of it are registers
    UNIT_PREDICATES = Column.SRC2  # how many then are predicates


class CalledColumn(IntEnum):
    """Rows UNIT of FAST_CALLED and FAST_EITHER; IMM is the address of the code (jit/called.py)."""

    CALLED_BLOCK = Column.SRC0  # address of what the code must know
    CALLED_HEARD = Column.SRC3  # 1 if the loop calls it with observers, too


class Operation(IntEnum):
    """What a row does; scalar operations follow from FIRST_SCALAR on."""

    EXIT = 1
    BRA = 2
    JOIN = 3
    BRX = 4
    UNIT = 5  # a unit instruction: its handler runs in Python, unless there is a fast form
    COLD = 6  # a scalar operation that is compiled on first use
    LD = 7
    ST = 8
    CALL = 9  # what was COLD, since it is compiled


class SplitColumn(IntEnum):
    SP_PC = 0
    SP_MASK = 1
    SP_STATE = 2  # a SplitState
    SP_GROUP = 3  # of lanes that will meet again, -1 for none
    SP_WARP = 4


class SplitState(IntEnum):
    FREE = 0
    RUNNABLE = 1
    BLOCKED = 2


class GroupColumn(IntEnum):
    """Lanes that a branch has parted and that meet again at one row."""

    G_LIVE = 0
    G_REJOIN = 1
    G_NEED = 2
    G_ARRIVED = 3
    G_PARENT = 4


class SegmentColumn(IntEnum):
    """An array in global memory."""

    SEG_BASE = 0
    SEG_END = 1
    SEG_HOST = 2
    SEG_LOGGED = 3  # do observers hear of accesses?


class CtaColumn(IntEnum):
    CT_RANK = 0
    CT_SHARED = 1  # host address of its shared memory


class BarrierColumn(IntEnum):
    """An mbarrier of the cluster (machine/mbarrier.py)."""

    MB_PLACE = 0  # its address in the .shared::cluster window
    MB_LIVES = 1  # 1: initialised, and not invalidated since
    MB_EXPECTED = 2  # arrivals a phase needs
    MB_PENDING = 3  # arrivals still missing in this phase
    MB_TX = 4  # bytes announced and not yet delivered
    MB_PHASE = 5  # phases completed
    MB_ANNOUNCED = 6  # bytes of this phase
    MB_DELIVERED = 7
    MB_TOLD = 8  # phase of which splits that sleep know


class TmemColumn(IntEnum):
    """Tensor memory of a CTA."""

    TM_CELLS = 0  # host address of its cells, row by row
    TM_OWNER = 1  # of the allocation that holds each column, 0 for none


class LogColumn(IntEnum):
    """One access of one lane, for observers."""

    LOG_ROW = 0
    LOG_THREAD = 1
    LOG_PLACE = 2  # a generic address
    LOG_SIZE = 3  # 2 * bytes + (is it a write?) + LOG_SAME * (is there the same after it?)


class Control(IntEnum):
    """Control words: what a call of the main loop is told, and what it leaves behind."""

    SPLIT = 0  # the split to run; afterwards the one that stopped
    BUDGET = 1  # instructions it may run
    EXECUTED = 2  # warp instructions so far
    WARPS_PER_CTA = 3
    CLUSTER_SIZE = 4
    SHARED_LIMIT = 5  # end of a CTA's shared memory
    LOCAL_PTR = 6
    LOCAL_BYTES = 7  # per thread
    LAST_SEGMENT = 8  # of global memory: where the search begins
    PLACE = 9  # result of translate(), or of reach()
    FAULT_KIND = 10
    FAULTS = 11  # lanes whose access was not legal; then kind, lane and address of the first
    FIRST_KIND = 12
    FAULT_LANE = 13
    FAULT_ADDRESS = 14
    LOG_ON = 15  # are there observers?
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
    ISSUED = 40  # instructions that left their operands behind
    ISSUED_PTR = 41
    FAST_DONE = 42  # unit instructions done without Python
    ISSUES = 43  # how many may do so before they are handed over
    ELECTED = 44  # elect.sync takes the highest member up to this lane
    EAGER = 45  # does asynchronous work complete at once?
    TENSOR_OPERATIONS = 46  # that called code has done since Python looked
    CHANGED = 47  # words of memory that its atomics have changed since then
    MARKED = 48  # accumulators of wgmma whose registers hold marks, since an instruction on them is pending
    LOCAL_WRITTEN = 49  # a flag for each byte of local memory, where there are observers
    HAPPENED = 50  # compiled code has done what splits that stand may wait for
    PHASES_DONE = 51  # that it has completed since Python looked
    BARRIER_ROOM = 52  # rows that the table of mbarriers has room for
    MAPS = 53  # tensor maps that compiled code knows (machine/map_table.py)
    MAPS_PTR = 54
    COPIES = 55  # by such maps since Python looked
    COPIES_PTR = 56
    TMEM_PTR = 57  # tensor memories of the CTAs
    LEFT = 58  # lanes of a batch have left the kernel since Python looked
    DRY = 59  # called code leaves out the arithmetic of products, to see what they take
    REMADE = 60  # compiled code has made or invalidated mbarriers since Python looked
    FOLLOWS = 61  # may a split that a branch has created go on where the one before it has joined?
    FOLLOWED = 62  # how many did so
    PARTS = 63  # ends of their parts of the log of accesses, from PARTS_FIRST on
    NEW_COUNT = 64  # splits that branches created; their numbers follow from NEW_FIRST on
    NEW_FIRST = 65
    PARTS_FIRST = 129


class Reason(IntEnum):
    """Why the main loop returned."""

    REASON_BUDGET = 0
    REASON_UNIT = 1
    REASON_COLD = 2
    REASON_FAULT = 3  # or its log of accesses is full
    REASON_EXIT = 4
    REASON_GONE = 5  # the split has joined another
    REASON_BAD_INDEX = 6  # of brx.idx
    REASON_STANDS = 7  # no split of the batch can go on by itself


def _publish(*tables: type[IntEnum]) -> None:
    """Makes the members of enumerations plain integers of this module: numba takes these for constants."""
    globals().update({member.name: int(member) for table in tables for member in table})


ROW_COLUMNS = (Column, AccessColumn, BraColumn, BrxColumn, UnitColumn, CalledColumn)
_publish(*ROW_COLUMNS, Operation, SplitColumn, SplitState, GroupColumn, SegmentColumn, CtaColumn)
_publish(BarrierColumn, TmemColumn, LogColumn, Control, Reason)

COLUMNS = len(Column)
OPERAND_COLUMNS = {member.name.lower(): int(member) for table in ROW_COLUMNS for member in table}
FIRST_SCALAR = 16
LOG_SAME, LOG_SIZE_MASK = 1 << 40, (1 << 40) - 1
MOST_PARTS = 256
CONTROL_WORDS = int(Control.PARTS_FIRST) + MOST_PARTS
FULL = 0xFFFF_FFFF  # all lanes
TURN = 16 * 2520  # instructions a split runs before others get a turn; most polling loops divide it
MOST_TOGETHER = 256  # times that barriers open for a batch before Python looks whether it goes round

# a batch goes on with its next split
QUIET_REASONS = tuple(int(Reason[f"REASON_{name}"]) for name in ("UNIT", "BUDGET", "GONE", "EXIT"))
SPLIT_COLUMNS, GROUP_COLUMNS, SEG_COLUMNS = len(SplitColumn), len(GroupColumn), len(SegmentColumn)
CT_COLUMNS, LOG_COLUMNS = len(CtaColumn), len(LogColumn)
ROW_BYTES, SEG_BYTES, CT_BYTES = 8 * COLUMNS, 8 * SEG_COLUMNS, 8 * CT_COLUMNS  # of one row of a table
LOG_BYTES, SPLIT_BYTES = 8 * LOG_COLUMNS, 8 * SPLIT_COLUMNS

# UNIT_FORM: it does nothing without observers (fences, hints); or what the main loop does by itself:
# leave the operands to another unit, call compiled code by its address, the latter and else the former, or a
# fast form that is part of the loop (units/registry.py)
ONLY_OBSERVED, FAST_ISSUE, FAST_CALLED, FAST_EITHER, FIRST_FAST = range(1, 6)

# a batch: splits that one call of the main loop runs, and where each is: not in it, moving, standing at
# something that Python must do, out of instructions, or gone
BATCH_LIST, BATCH_STATE = range(2)
ABSENT, MOVING, STANDS, PAUSED, GONE = range(5)
MB_COLUMNS, TM_COLUMNS = len(BarrierColumn), len(TmemColumn)
# instructions that left their operands behind; LOGGED: accesses in the log that came before; the values of
# the slots that the instruction reads follow from VALUES on
ISSUE_ROW, ISSUE_SPLIT, ISSUE_MASK, ISSUE_LOGGED, ISSUE_VALUES = range(5)
ISSUE_MOST = 14  # values of one instruction; tcgen05.mma has 13
ISSUE_ROOM, ISSUE_COLUMNS = 16, ISSUE_VALUES + ISSUE_MOST
BARRIER_BYTES, ISSUE_BYTES = 8 * MB_COLUMNS, 8 * ISSUE_COLUMNS
