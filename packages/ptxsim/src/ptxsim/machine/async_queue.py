"""Asynchronous work of hardware units. A run chooses only when each piece completes.

`order="program"` completes everything at once; `"adverse"` completes nothing until every thread waits, then
one piece at a time, from the newest queue; an int seeds a random choice between running and completing.
Pieces of one queue (the tensor core's work from one thread) complete in the order they were issued.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Work:
    """One piece of asynchronous work."""

    queue: object  # pieces with an equal queue complete in order; None: in any order
    finish: Callable[[], None]  # does the work, unless `batch` is set
    label: str  # its name in reports
    batch: Callable[[list[Work]], None] | None = None  # does several pieces of one kind, in order
    op: Any = None  # what `batch` needs to know about the piece


class Engine:
    def __init__(self, order: str | int):
        self.eager = order == "program"
        self.random = random.Random(order) if isinstance(order, int) else None
        self.queues: dict[object, deque[Work]] = {}
        self._loose = 0  # numbers queues of unordered pieces

    def submit(self, work: Work) -> None:
        if self.eager and work.batch is None:
            if self.queues:
                self.flush()
            work.finish()
            return
        key = work.queue
        if key is None:
            self._loose += 1
            key = self._loose
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = deque()
        queue.append(work)

    def flush(self) -> None:
        """Completes everything pending (with order="program": batched work, before anything else happens)."""
        while self.queues:
            self.complete_one()

    def complete_one(self) -> bool:
        """Completes one piece, or one batch at the head of a queue; False if nothing was pending."""
        if not self.queues:
            return False
        keys = list(self.queues)
        key = self.random.choice(keys) if self.random else keys[-1]
        queue = self.queues[key]
        batch = [queue.popleft()]
        while queue and batch[0].batch is not None and queue[0].batch is not None and len(batch) < 16:
            batch.append(queue.popleft())
        if not queue:
            del self.queues[key]
        if batch[0].batch is not None:
            batch[0].batch(batch)
        else:
            batch[0].finish()
        return True

    def pending(self) -> list[Work]:
        return [work for queue in self.queues.values() for work in queue]
