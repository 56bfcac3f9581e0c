"""One mbarrier object (PTX ISA 9.7.13.15): expected and pending arrivals, tx-count, phase.

A phase completes when no arrival is pending and the tx-count is zero; then pending is reloaded and the phase
number goes up by one. Its parity is what try_wait.parity compares. The rules are compiled code on a row of
words (`bytecode.BarrierColumn`), which the main loop calls; an `MBarrier` calls it for handlers and checks.
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
    """A count left its legal range; the message is one clause without the barrier's name."""


class TooManyBytes(MBarrierError):
    """One announcement alone is more than a tx-count holds."""


# ---- the rules: of numbers, for Python and compiled code; of a barrier by the address of its row ----


@both
def legal_count(count):
    return 1 <= count <= MAX_COUNT


@both
def state_of(phase, pending):
    """The token that arrive returns: the current phase and pending count (opaque to programs)."""
    return phase << 32 | pending


@both
def phases_since(phase, state):
    """How many phases have completed since a token was made, modulo 2^32: test_wait passes from one on."""
    return phase - (state >> 32) & 0xFFFF_FFFF


@both
def has_passed(phase, parity):
    """What test_wait.parity answers: the phase with this parity has completed."""
    return (phase ^ parity) & 1 != 0


@inner
def begin(barrier, count):
    """A fresh barrier."""
    for column in (bytecode.MB_TX, bytecode.MB_PHASE, bytecode.MB_TOLD):
        set_word(barrier, column, 0)
    set_word(barrier, bytecode.MB_ANNOUNCED, 0)
    set_word(barrier, bytecode.MB_DELIVERED, 0)
    set_word(barrier, bytecode.MB_EXPECTED, count)
    set_word(barrier, bytecode.MB_PENDING, count)
    set_word(barrier, bytecode.MB_LIVES, 1)


@inner
def arrive(barrier, count, drop):
    """`count` arrivals; with `drop` later phases expect as many fewer. False: more than are pending."""
    pending = word(barrier, bytecode.MB_PENDING)
    if count > pending:
        return False
    set_word(barrier, bytecode.MB_PENDING, pending - count)
    if drop:
        set_word(barrier, bytecode.MB_EXPECTED, word(barrier, bytecode.MB_EXPECTED) - count)
    return True


@inner
def move_tx(barrier, change):
    """Announces bytes, or delivers so many if negative. False: the tx-count has left its range."""
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
    """One rule, for Python."""
    if rule == BEGIN:
        begin(barrier, number)
    if rule in (ARRIVE, DROP):
        return np.int64(arrive(barrier, number, rule == DROP))
    if rule == MOVE_TX:
        return np.int64(move_tx(barrier, number))
    return np.int64(complete_phase(barrier)) if rule == COMPLETE else np.int64(0)


# ---- the same for Python ----


class MBarrier(ctypes.Structure):
    """A row of words as `bytecode.BarrierColumn` names them, with the names that Python uses."""

    _fields_ = [(column.name[3:].lower(), ctypes.c_int64) for column in bytecode.BarrierColumn]
    place: int
    lives: int  # 1: initialised, and not invalidated since
    expected: int  # arrivals a phase needs
    pending: int  # arrivals still missing in this phase
    tx: int  # bytes announced, not yet delivered (negative: delivered before announced)
    phase: int  # phases completed
    announced: int  # bytes announced in this phase
    delivered: int  # bytes delivered in this phase
    told: int  # phase of which splits that sleep know

    @classmethod
    def at(cls, table: np.ndarray, row: int) -> MBarrier:
        """That of a row of a table, int64 (rows, MB_COLUMNS)."""
        made = cls.from_buffer(table, row * bytecode.BARRIER_BYTES)  # type: ignore[arg-type]  # a buffer
        made.address = ctypes.addressof(made)
        return made

    @staticmethod
    def require_legal(count: int) -> None:
        if not legal_count(count):
            raise MBarrierError(f"initialised with count {count}; legal counts are 1 .. {MAX_COUNT}")

    @classmethod
    def with_count(cls, count: int) -> MBarrier:
        """One that belongs to no cluster."""
        made = cls.at(np.zeros((1, bytecode.MB_COLUMNS), np.int64), 0)
        made.begin(count)
        return made

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
        """One more arrival in this phase. False: more than a barrier can count."""
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
                    f"{change} bytes are announced at once, and a tx-count holds {MAX_COUNT} at most"
                )
            raise MBarrierError(f"tx-count {self.tx} leaves its range of +-{MAX_COUNT} bytes")

    def try_complete_phase(self) -> bool:
        return bool(apply(COMPLETE, self.address, 0))

    def passed(self, parity: int) -> bool:
        return has_passed(self.phase, parity)

    def state(self) -> int:
        return state_of(self.phase, self.pending) & (2**64 - 1)

    def has_bytes_of(self, missing: int) -> bool:
        """Are the bytes that came unannounced just those missing elsewhere, once or several times?"""
        return self.tx < 0 < missing and self.tx % missing == 0
