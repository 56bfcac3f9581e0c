"""All interleavings of a small program, and what is wrong in any of them. Nothing here comes from ptxsim.

A state is the position of each warp, what each warp knows to have happened (a set of accesses, as bits), the
barriers and flags with the knowledge that they pass on, and the copies under way. Any warp that can take its
next step may do so, and any copy may complete, in any order: a search visits every reachable state. An access
races with an earlier one to the same slot if its warp does not know of that one (PTX ISA 8.9); a state that
is not an end and from which nothing can continue is a standstill.
"""

from __future__ import annotations

from itertools import combinations

from research.every.programs import Program, source_line
from research.every.states import Bar, Flight, Meet, State, TooLarge, Truth, Values

LIMIT = 60_000  # states of a program; larger ones are left out, and counted

_SLOT_AT = dict.fromkeys(("st", "ld", "load", "store", "put", "cp"), 0)  # verb -> index of its slot
_SLOT_AT |= {"peek": 1, "first": 1, "later": 1, "test": 2}
FILLED = 10_000  # word n of the copies' source is FILLED + n
_OUT, _IN = (("put", "store"), ("close", "store")), (("cp",), ("commit",))  # what joins, what closes a group


def explore(program: Program, values: bool = False) -> Truth:
    """The truth about a program; `values`: with the outcomes, too. Raises TooLarge."""
    search = _Search(program)
    start = State(
        (0,) * len(program.warps), (0,) * len(program.warps),
        tuple(Bar(count, 0, 0, 0, 0) for count in program.bars),
        tuple(Meet(0, 0, ()) for _ in program.meets), ((0, 0),) * 2, (), 0, (), (), frozenset(),
        Values(sums=(0,) * len(program.warps)) if values else None,
    )  # fmt: skip
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        after = search.successors(state)
        if not after:
            search.end(state)
        for following in after:
            if following not in seen:
                seen.add(following)
                todo.append(following)
        if len(seen) > LIMIT:
            raise TooLarge
    search.truth.states = len(seen)
    return search.truth


def _with(items: tuple, index: int, value) -> tuple:
    return (*items[:index], value, *items[index + 1 :])


class _Search:
    def __init__(self, program: Program):
        self.program, self.truth = program, Truth()
        self.places = places = program.places
        self.bit = {place: 1 << n for n, place in enumerate(places)}
        self.slots = {place: self._slot(place) for place in places}

    def _step(self, place) -> tuple:
        return self.program.warps[place[0]][place[1]]

    def _slot(self, place) -> int | None:
        verb, *numbers = self._step(place)
        return numbers[_SLOT_AT[verb]] if verb in _SLOT_AT else None

    def _slot_of(self, bit: int) -> int | None:
        return self.slots[self.places[bit.bit_length() - 1]]

    def _writes(self, place) -> bool:
        return self._step(place)[0] in ("st", "load", "cp", "first")

    # ---- transitions ----

    def successors(self, state: State) -> list[State]:
        under_way = sum(flight.event for flight in state.flights)
        found = [self._completed(state, f) for f in state.flights if not f.behind & under_way]
        found += [self._at_once(state, few) for few in self._sets(state)]
        for warp, steps in enumerate(self.program.warps):
            if state.at[warp] < len(steps) and warp not in state.stuck:
                verb, *numbers = steps[state.at[warp]]
                following = getattr(self, "do_" + verb)(state, warp, *numbers)
                if following is not None:
                    found.append(following)
        return found

    def _on(self, state: State, warp: int, know: int | None = None, **changes) -> State:
        """The state after the warp's step; the warp knows `know` from now on."""
        learnt = state.know if know is None else _with(state.know, warp, know)
        return state._replace(at=_with(state.at, warp, state.at[warp] + 1), know=learnt, **changes)

    def _place(self, state: State, warp: int) -> tuple[int, int]:
        return warp, state.at[warp]

    def _access(self, state: State, place, know: int) -> State:
        """Records what races with this access; returns the state after it."""
        for other in self.places:
            bit = self.bit[other]
            if not state.done & bit or know & bit or other == place:
                continue
            if self._written_anew(state, bit, self.slots[place], know):
                continue
            if self.slots[other] == self.slots[place] and (self._writes(other) or self._writes(place)):
                self.truth.races.add(tuple(sorted((other, place))))
        values = None if state.values is None else self._moved(state.values, place)
        return state._replace(done=state.done | self.bit[place], values=values)

    def _moved(self, values: Values, place: tuple[int, int]) -> Values:
        (warp, _), (verb, *_), slot = place, self._step(place), self.slots[place]
        line, held = source_line(*place), values.slots[slot]
        if verb in ("put", "store"):
            return values._replace(out=tuple(sorted((*values.out, (line, held)))))
        if not self._writes(place):
            return values._replace(sums=_with(values.sums, warp, values.sums[warp] + held))
        word = {"load": FILLED, "cp": FILLED + 4 * line}.get(verb, line)
        return values._replace(slots=_with(values.slots, slot, word))

    def _written_anew(self, state: State, bit: int, slot: int, know: int) -> bool:
        """Whether a copy that came after the access `bit`, and that `know` contains, has filled the slot
        since.
        """
        return any(know & copy and knew & bit and self._slot_of(copy) == slot for copy, knew in state.copies)

    def do_st(self, state, warp, slot):
        place = self._place(state, warp)
        know = state.know[warp]
        return self._on(self._access(state, place, know), warp, know | self.bit[place])

    do_ld = do_st

    def do_fence(self, state, warp):
        bit, know = self.bit[self._place(state, warp)], state.know[warp]
        return self._on(state, warp, know | bit, fences=(*state.fences, (bit, know)))

    # ---- mbarriers ----

    def _arrived(self, state: State, number: int, bar: Bar) -> tuple[Bar, ...]:
        """The barriers after one has changed; its phase completes if nothing is pending."""
        self.truth.over |= bar.pending < 0
        if bar.pending == 0 and bar.tx == 0:
            bar = Bar(self.program.bars[number], 0, bar.phase + 1, bar.gathered, bar.gathered)
        return _with(state.bars, number, bar)

    def do_arrive(self, state, warp, number, tx=0):
        bar = state.bars[number]
        gathered = bar.gathered | state.know[warp]
        bar = bar._replace(pending=bar.pending - 1, tx=bar.tx + tx, gathered=gathered)
        return self._on(state, warp, bars=self._arrived(state, number, bar))

    def do_expect(self, state, warp, number):
        return self.do_arrive(state, warp, number, tx=1)

    def do_wait(self, state, warp, number, parity):
        bar = state.bars[number]
        if bar.phase & 1 == parity:
            return None
        return self._on(state, warp, state.know[warp] | bar.published)

    # ---- copies ----

    def do_load(self, state, warp, slot, bar):
        flight = Flight(self.bit[self._place(state, warp)], state.know[warp], bar, warp)
        return self._on(state, warp, flights=(*state.flights, flight))

    def do_store(self, state, warp, slot):
        place, know = self._place(state, warp), state.know[warp]
        for other in self.places:
            generic = self._step(other)[0] in ("st", "first", "cp")
            if self.slots[other] == slot and generic and know & state.done & self.bit[other]:
                self._proxy(state, other, place, know)
        return self.do_cp(state, warp, slot)

    do_put = do_store

    def do_cp(self, state, warp, slot):
        flight = Flight(self.bit[self._place(state, warp)], state.know[warp], -1, warp)
        return self._on(state, warp, flights=(*state.flights, flight))

    def do_signal(self, state, warp, bar):
        copies = self._of_groups(warp, state.at[warp], _IN, None)
        flight = Flight(self.bit[self._place(state, warp)], state.know[warp], bar, warp, copies)
        return self._on(state, warp, flights=(*state.flights, flight))

    def _proxy(self, state: State, write, read, know: int) -> None:
        """Records a store and the copy that reads it if the fence between them is missing or not the writer's
        (9.7.13.4).
        """
        between = [bit for bit, knew in state.fences if know & bit and knew & self.bit[write]]
        own = [bit for bit in between if self.places[bit.bit_length() - 1][0] == write[0]]
        if not (between if self._step(write)[0] == "cp" else own):
            (self.truth.odd if between else self.truth.fences).add((write, read))

    def _sets(self, state: State) -> list[tuple[Flight, ...]]:
        """Sets of copies that may complete on one barrier at the same time."""
        loads = [f for f in state.flights if f.bar >= 0 and not f.behind]
        sets = (few for n in range(2, len(loads) + 1) for few in combinations(loads, n))
        return [few for few in sets if len({flight.bar for flight in few}) == 1]

    def _at_once(self, state: State, few: tuple[Flight, ...]) -> State:
        """The copies' bytes leave the tx-count together, as on an H200; the count may thus skip zero."""
        for flight in few[:-1]:
            state = self._completed(state, flight, last=False)
        return self._completed(state, few[-1])

    def _completed(self, state: State, flight: Flight, last: bool = True) -> State:
        place = self.places[flight.event.bit_length() - 1]
        flights = tuple(f for f in state.flights if f is not flight)
        state = state._replace(flights=flights)
        if self._step(place)[0] == "signal":
            return self._signalled(state, flight)
        state = self._access(state, place, flight.know)
        if self._writes(place):
            state = state._replace(copies=(*state.copies, (flight.event, flight.know)))
        if flight.bar < 0:
            return state
        bar = state.bars[flight.bar]
        bar = bar._replace(tx=bar.tx - 1, gathered=bar.gathered | flight.event)
        if not last:
            return state._replace(bars=_with(state.bars, flight.bar, bar))
        return state._replace(bars=self._arrived(state, flight.bar, bar))

    def _signalled(self, state: State, flight: Flight) -> State:
        """The arrival of cp.async: it releases only the copies (9.7.13.15.15)."""
        bar = state.bars[flight.bar]
        bar = bar._replace(pending=bar.pending - 1, gathered=bar.gathered | flight.behind)
        return state._replace(bars=self._arrived(state, flight.bar, bar))

    def _of_groups(self, warp: int, at: int, kind: tuple, left: int | None) -> int:
        """Bits of the copies before step `at`, of all groups but the last `left`; with None, also outside of
        groups.
        """
        members, ends = kind
        steps = self.program.warps[warp][:at]
        total, before, found = sum(step[0] in ends for step in steps), 0, 0
        for i, step in enumerate(steps):
            if step[0] in members and (left is None or before < total - left):
                found |= self.bit[warp, i]
            before += step[0] in ends
        return found

    def _awaited(self, state, warp, copies: int):
        if any(flight.event & copies for flight in state.flights):
            return None
        return self._on(state, warp, state.know[warp] | copies)

    def do_left(self, state, warp, few):
        return self._awaited(state, warp, self._of_groups(warp, state.at[warp], _OUT, few))

    def do_drain(self, state, warp):
        return self.do_left(state, warp, 0)

    def do_keep(self, state, warp, few):
        return self._awaited(state, warp, self._of_groups(warp, state.at[warp], _IN, few))

    def do_close(self, state, warp):
        return self._on(state, warp)

    do_commit = do_close

    # ---- CTA barriers ----

    def do_sync(self, state, warp, number, waits=True):
        meet = state.meets[number]
        waiting = (*meet.waiting, warp) if waits else meet.waiting
        meet = Meet(meet.arrived + 1, meet.gathered | state.know[warp], waiting)
        if waits:
            state = state._replace(stuck=state.stuck | {warp})
        else:
            state = self._on(state, warp)
        if meet.arrived < self.program.meets[number]:
            return state._replace(meets=_with(state.meets, number, meet))
        state = state._replace(meets=_with(state.meets, number, Meet(0, 0, ())))
        for one in meet.waiting:
            state = self._on(state, one, state.know[one] | meet.gathered, stuck=state.stuck - {one})
        return state

    def do_meet(self, state, warp, number):
        return self.do_sync(state, warp, number, waits=False)

    # ---- flags ----

    def do_set(self, state, warp, flag):
        return self._on(state, warp, flags=_with(state.flags, flag, (1, state.know[warp])))

    def do_add(self, state, warp, flag):
        value, stamp = state.flags[flag]
        return self._on(state, warp, flags=_with(state.flags, flag, (value + 1, stamp | state.know[warp])))

    def do_count(self, state, warp, flag, need):
        value, stamp = state.flags[flag]
        return self._on(state, warp, state.know[warp] | stamp) if value >= need else None

    def do_poll(self, state, warp, flag):
        return self.do_count(state, warp, flag, 1)

    # ---- steps that depend on who came first ----

    def _perhaps(self, state, warp, taken: bool, know: int):
        """The warp continues with what it knows; if `taken`, it reads or writes its slot first."""
        if not taken:
            return self._on(state, warp, know)
        place = self._place(state, warp)
        return self._on(self._access(state, place, know), warp, know | self.bit[place])

    def do_peek(self, state, warp, flag, slot):
        value, stamp = state.flags[flag]
        return self._perhaps(state, warp, value > 0, state.know[warp] | stamp)

    def do_test(self, state, warp, number, parity, slot):
        bar = state.bars[number]
        passed = bar.phase & 1 != parity
        return self._perhaps(state, warp, passed, state.know[warp] | (bar.published if passed else 0))

    def do_first(self, state, warp, flag, slot, later=False):
        value, stamp = state.flags[flag]
        know = state.know[warp] | stamp
        state = state._replace(flags=_with(state.flags, flag, (value + 1, know)))
        return self._perhaps(state, warp, (value > 0) == later, know)

    def do_later(self, state, warp, flag, slot):
        return self.do_first(state, warp, flag, slot, later=True)

    # ---- ends ----

    def end(self, state: State) -> None:
        if any(at < len(steps) for at, steps in zip(state.at, self.program.warps, strict=True)):
            self.truth.stuck = True
            return
        if state.values is not None:
            self.truth.outcomes.add(state.values._replace(slots=()))
        known = 0
        for know in state.know:
            known |= know
        for place in self.places:
            if self._step(place)[0] == "load" and not known & self.bit[place]:
                self.truth.pending.add(place)
