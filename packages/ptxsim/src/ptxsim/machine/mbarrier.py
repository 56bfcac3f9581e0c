"""One mbarrier object (PTX ISA 9.7.13.15): expected and pending arrivals, tx-count, phase.

A phase completes when no arrival is pending and the tx-count is zero; then the pending count is reset to the
expected one, and the phase number increases by one. try_wait.parity compares the parity of that number. The
rules are compiled functions on a row of words (`bytecode.BarrierColumn`): the main loop calls them directly,
handlers and checks through an `MBarrier`.
"""

from __future__ import annotations

import ctypes

import numpy as np
from numba.extending import register_jitable as both

from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit import bytecode
from ptxsim.jit.compiled import compiled
from ptxsim.jit.loop_memory import set_word, word

MAX_COUNT = (1 << 20) - 1  # PTX ISA 9.7.13.15.1: counts 1 .. 2^20 - 1, tx-count within +- 2^20 - 1


class MBarrierError(ValueError):
    """A count has left its legal range. The message is one clause without the barrier's name."""


class TooManyBytes(MBarrierError):
    """A single expect-tx announces more bytes than a tx-count holds."""


# ---- the rules: on numbers, for Python and compiled code; or on a barrier, by the address of its row ----


@both
def legal_count(count):
    return 1 <= count <= MAX_COUNT


@both
def state_of(phase, pending):
    """The token that arrive returns: the current phase and pending count (opaque to programs)."""
    return phase << 32 | pending


@both
def phases_since(phase, state):
    """How many phases have completed since a token was made, modulo 2^32; test_wait passes if any has."""
    return phase - (state >> 32) & 0xFFFF_FFFF


@both
def has_passed(phase, parity):
    """Whether the phase with this parity has completed: the result of test_wait.parity."""
    return (phase ^ parity) & 1 != 0


@inner
def begin(barrier, count):
    """Initialises a barrier that expects `count` arrivals per phase."""
    for column in (bytecode.MB_TX, bytecode.MB_PHASE, bytecode.MB_TOLD):
        set_word(barrier, column, 0)
    set_word(barrier, bytecode.MB_ANNOUNCED, 0)
    set_word(barrier, bytecode.MB_DELIVERED, 0)
    set_word(barrier, bytecode.MB_EXPECTED, count)
    set_word(barrier, bytecode.MB_PENDING, count)
    set_word(barrier, bytecode.MB_LIVES, 1)


@inner
def arrive(barrier, count, drop):
    """Makes `count` arrivals; with `drop`, later phases expect as many fewer. False if fewer are pending."""
    pending = word(barrier, bytecode.MB_PENDING)
    if count > pending:
        return False
    set_word(barrier, bytecode.MB_PENDING, pending - count)
    if drop:
        set_word(barrier, bytecode.MB_EXPECTED, word(barrier, bytecode.MB_EXPECTED) - count)
    return True


@inner
def move_tx(barrier, change):
    """Adds `change` to the tx-count: bytes announced, or delivered if negative. False: it left its range."""
    tx = word(barrier, bytecode.MB_TX) + change
    set_word(barrier, bytecode.MB_TX, tx)
    if abs(tx) > MAX_COUNT:
        return False
    column = bytecode.MB_ANNOUNCED if change > 0 else bytecode.MB_DELIVERED
    set_word(barrier, column, word(barrier, column) + abs(change))
    return True


@inner
def complete_phase(barrier):
    """Completes the phase if nothing is missing; True if it did."""
    if word(barrier, bytecode.MB_PENDING) != 0 or word(barrier, bytecode.MB_TX) != 0:
        return False
    set_word(barrier, bytecode.MB_PHASE, word(barrier, bytecode.MB_PHASE) + 1)
    set_word(barrier, bytecode.MB_PENDING, word(barrier, bytecode.MB_EXPECTED))
    set_word(barrier, bytecode.MB_ANNOUNCED, 0)
    set_word(barrier, bytecode.MB_DELIVERED, 0)
    return True


BEGIN, ARRIVE, DROP, MOVE_TX, COMPLETE = range(5)


@compiled()
def apply(rule, barrier, number):
    """Applies one rule, for calls from Python."""
    if rule == BEGIN:
        begin(barrier, number)
    if rule in (ARRIVE, DROP):
        return np.int64(arrive(barrier, number, rule == DROP))
    if rule == MOVE_TX:
        return np.int64(move_tx(barrier, number))
    return np.int64(complete_phase(barrier)) if rule == COMPLETE else np.int64(0)


# ---- barriers in Python ----


class MBarrier(ctypes.Structure):
    """A row of a barrier table: the words of `bytecode.BarrierColumn` as attributes."""

    _fields_ = [(column.name[3:].lower(), ctypes.c_int64) for column in bytecode.BarrierColumn]
    place: int
    lives: int  # 1: initialised, and not invalidated since
    expected: int  # arrivals that a phase needs
    pending: int  # arrivals still missing in this phase
    tx: int  # bytes announced but not yet delivered (negative: delivered before announced)
    phase: int  # phases completed
    announced: int  # bytes announced in this phase
    delivered: int  # bytes delivered in this phase
    told: int  # the latest phase for which sleeping splits were woken
    maker: int  # thread of the cluster that initialised it

    @classmethod
    def at(cls, table: np.ndarray, row: int) -> MBarrier:
        """The barrier in a row of a table, int64 (rows, MB_COLUMNS)."""
        made = cls.from_buffer(table, row * bytecode.BARRIER_BYTES)  # type: ignore[arg-type]  # a buffer
        made.address = ctypes.addressof(made)
        return made

    @staticmethod
    def require_legal(count: int) -> None:
        if not legal_count(count):
            raise MBarrierError(f"initialised with count {count}; legal counts are 1 .. {MAX_COUNT}")

    def begin(self, count: int) -> None:
        self.require_legal(count)
        apply(BEGIN, self.address, count)

    def arrive(self, count: int = 1, drop: bool = False) -> None:
        if not apply(DROP if drop else ARRIVE, self.address, count):
            raise MBarrierError(
                f"{count} arrival(s) while only {self.pending} of {self.expected} were still expected "
                f"in phase {self.phase}"
            )

    def expect_one_more(self) -> bool:
        """Expects one more arrival in this phase. False: more than a barrier can count."""
        self.pending += 1
        return self.pending <= MAX_COUNT

    def expect_tx(self, size: int) -> None:
        self._move_tx(size)

    def complete_tx(self, size: int) -> None:
        self._move_tx(-size)

    def _move_tx(self, change: int) -> None:
        if not apply(MOVE_TX, self.address, change):
            if change > MAX_COUNT:
                raise TooManyBytes(
                    f"{change} bytes are announced at once, but a tx-count holds {MAX_COUNT} at most"
                )
            raise MBarrierError(f"tx-count {self.tx} leaves its range of +-{MAX_COUNT} bytes")

    def try_complete_phase(self) -> bool:
        return bool(apply(COMPLETE, self.address, 0))

    def passed(self, parity: int) -> bool:
        return has_passed(self.phase, parity)

    def untouched(self, count: int) -> bool:
        """Whether the barrier is as mbarrier.init with this count leaves it."""
        fresh = self.expected == self.pending == count and not (self.phase or self.tx)
        return fresh and not (self.announced or self.delivered)

    def state(self) -> int:
        return state_of(self.phase, self.pending) & (2**64 - 1)

    def has_bytes_of(self, missing: int) -> bool:
        """Whether the bytes that came unannounced are a multiple of those missing at another barrier."""
        return self.tx < 0 < missing and self.tx % missing == 0
