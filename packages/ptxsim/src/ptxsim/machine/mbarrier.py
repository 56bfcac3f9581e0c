"""One mbarrier object (PTX ISA 9.7.13.15): expected and pending arrivals, tx-count, phase.

A phase completes when no arrival is pending and the tx-count is zero; then pending is reloaded and the phase
number goes up by one. Its parity is what try_wait.parity compares.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_COUNT = (1 << 20) - 1  # PTX ISA 9.7.13.15.1: counts 1 .. 2^20 - 1, tx-count within +- 2^20 - 1


class MBarrierError(ValueError):
    """A count left its legal range; the message is one clause without the barrier's name."""


@dataclass
class MBarrier:
    expected: int  # arrivals a phase needs
    pending: int  # arrivals still missing in this phase
    tx: int = 0  # bytes announced and not yet delivered (negative: delivered before they were announced)
    phase: int = 0  # phases completed
    announced: int = 0  # bytes announced in this phase
    delivered: int = 0  # bytes delivered in this phase

    @classmethod
    def with_count(cls, count: int) -> MBarrier:
        if not 1 <= count <= MAX_COUNT:
            raise MBarrierError(f"initialised with count {count}; legal counts are 1 .. {MAX_COUNT}")
        return cls(count, count)

    def arrive(self, count: int = 1, drop: bool = False) -> None:
        """`count` arrivals; with `drop` later phases expect as many fewer."""
        if count > self.pending:
            raise MBarrierError(
                f"{count} arrival(s) while only {self.pending} of {self.expected} were still expected "
                f"in phase {self.phase}"
            )
        self.pending -= count
        if drop:
            self.expected -= count

    def expect_tx(self, size: int) -> None:
        self._move_tx(size)
        self.announced += size

    def complete_tx(self, size: int) -> None:
        self._move_tx(-size)
        self.delivered += size

    def _move_tx(self, change: int) -> None:
        self.tx += change
        if abs(self.tx) > MAX_COUNT:
            raise MBarrierError(f"tx-count {self.tx} leaves its range of +-{MAX_COUNT} bytes")

    def try_complete_phase(self) -> bool:
        """Completes the phase if nothing is missing; True if it did."""
        if self.pending or self.tx:
            return False
        self.phase += 1
        self.pending = self.expected
        self.announced = self.delivered = 0
        return True

    def has_bytes_of(self, missing: int) -> bool:
        """Are the bytes that came unannounced just those missing elsewhere, once or several times?"""
        return self.tx < 0 < missing and self.tx % missing == 0

    def passed(self, parity: int) -> bool:
        """What test_wait.parity answers: the phase with this parity has completed."""
        return (self.phase & 1) != (parity & 1)

    def state(self) -> int:
        """The 64-bit token that arrive returns: the current phase and pending count (opaque to programs)."""
        return (self.phase << 32 | self.pending) & (2**64 - 1)

    def passed_state(self, token: int) -> bool:
        """test_wait with a token of the current or the preceding phase."""
        return (token >> 32) & 0xFFFF_FFFF != self.phase & 0xFFFF_FFFF
