"""The asynchronous half of a run: copies, cp.async, tensor core, tensor memory."""

from __future__ import annotations

from research.truth.execute import QUADRANT, Async, Run, Undefined, mma_cells, tile_words, union
from research.truth.model import SLOT


class FullRun(Run):
    """A run with every kind of event."""

    def start(self, finish, after=()) -> Async:
        work = Async(finish, list(after))
        self.flight.append(work)
        return work

    def arrival(self, op, stamp: tuple):
        """What happens when the work that an mbarrier tracks is complete."""
        return lambda: self.signal(self.barriers[op.a["bar"]], op, stamp)

    # ---- bulk copies ----

    def do_bulk_load(self, warp, op, threads):
        """global or shared -> shared memory of a CTA; reports to an mbarrier (9.7.9.25.4.1), and releases no
        memory access but its own (8.9.1.1). Its signal still comes after its issue.
        """
        if len(threads) > 1:
            raise Undefined("several threads issue one copy: the bytes of a phase are a matter of luck")
        a, words = op.a, op.a["words"]
        (t,) = threads
        for rank in a.get("ranks") or (a["rank"],):  # several: multicast, to the same offset in each CTA
            touches = [(*a["source"], words, "r"), ("s", rank, a["slot"] * SLOT, words, "w")]
            bit = self.node(op, t, "copy", touches, self.know[t])
            self.awaited[bit] = ("cta", rank)
            stamp = (bit, self.known[t])
            bar = self.barriers.get((rank, a["bar"][1]) if a.get("ranks") else a["bar"])
            if bar is None:
                raise Undefined("a copy reports to an mbarrier that nobody initialised")
            self.start(lambda bar=bar, stamp=stamp: self.signal(bar, op, stamp, 0, -4 * words))
        return True

    def do_bulk_store(self, warp, op, threads):
        """shared -> global; belongs to the open group of its thread."""
        a, words = op.a, op.a["words"]
        for t in threads:
            reads = self.node(
                op, t, "copy", [("s", self.rank(t), a["slot"] * SLOT, words, "r")], self.know[t]
            )
            writes = self.node(op, t, "copy", [("g", 0, a["to"] * SLOT, words, "w")], self.know[t])
            self.awaited[reads] = ("thread", t)
            self.open_group("bulk", t).append((self.start(lambda: None), writes, reads))
        return True

    def open_group(self, kind: str, owner) -> list:
        groups = self.groups.setdefault((kind, owner), [[]])
        return groups[-1]

    def commit(self, kind: str, owner) -> None:
        self.groups.setdefault((kind, owner), [[]]).append([])

    def group_wait(self, kind: str, owner, pending: int, reading: bool = False, all_of: bool = False):
        """The history that a wait for groups acquires, or None while the groups are under way."""
        groups = self.groups.get((kind, owner), [[]])
        closed = groups if all_of else groups[:-1]
        covered = closed[: len(closed) - pending] if pending else closed
        bits = 0
        for work, writes, reads in (item for group in covered for item in group):
            if not work.done:
                return None
            bits |= reads if reading else writes | reads
        return bits

    def do_bulk_commit(self, warp, op, threads):
        for t in threads:
            self.commit("bulk", t)
        return True

    def do_bulk_wait(self, warp, op, threads):
        found = [self.group_wait("bulk", t, op.a["n"], op.a["read"]) for t in threads]
        return self.wait_for(threads, found)

    def wait_for(self, threads, found: list) -> bool:
        if None in found:
            return False
        for t, bits in zip(threads, found, strict=True):
            self.know[t] |= bits
        return True

    # ---- cp.async ----

    def do_cp_async(self, warp, op, threads):
        a = op.a
        for t in threads:
            at = t % 32
            touches = [
                ("s", self.rank(t), a["slot"] * SLOT + at, 1, "w"),
                ("g", 0, a["from"] * SLOT + at, 1, "r"),
            ]
            bit = self.node(op, t, "cp.async", touches, self.know[t])
            self.open_group("cp", t).append((self.start(lambda: None), bit, 0))
        return True

    def do_cp_commit(self, warp, op, threads):
        for t in threads:
            self.commit("cp", t)
        return True

    def do_cp_wait(self, warp, op, threads):
        everything = op.a["n"] < 0
        n = 0 if everything else op.a["n"]
        return self.wait_for(threads, [self.group_wait("cp", t, n, all_of=everything) for t in threads])

    def do_cp_arrive(self, warp, op, threads):
        """cp.async.mbarrier.arrive: arrives when this thread's copies so far are complete, and releases
        nothing else (8.9.1.1); without .noinc the phase expects that arrival (9.7.13.15.15).
        """
        for t in self.shuffled(threads):
            self.barriers[op.a["bar"]].pending += 1 if op.a.get("inc") else 0
            items = [item for group in self.groups.get(("cp", t), []) for item in group]
            bits = 0
            for _, writes, _ in items:
                bits |= writes
            self.start(
                lambda stamp=(bits, self.known[t]): self.signal(self.barriers[op.a["bar"]], op, stamp),
                [i[0] for i in items],
            )
        return True

    # ---- tensor memory and tcgen05.mma ----

    def do_tfence(self, warp, op, threads):
        for t in threads:
            if op.a["after"]:
                self.usable[t] |= self.known[t]
            else:
                self.known[t] |= self.usable[t]
        return True

    def tmem(self, warp, op, threads, mode: str, kind: str) -> bool:
        place = ("t", self.rank(threads[0]), QUADRANT * (warp % 4) + op.a["column"], 1, mode)
        know, usable = self.released(threads)[0], 0
        for t in threads:  # one operation of the warp, which comes after the fences of all its lanes
            usable |= self.usable[t]
        bit = self.node(op, threads[0], "tmem", [place], know, usable)
        self.awaited[bit] = ("thread", threads[0])
        self.open_group(kind, warp).append((self.start(lambda: None), bit, 0))
        return True

    def do_tmem_ld(self, warp, op, threads):
        return self.tmem(warp, op, threads, "r", "ld")

    def do_tmem_st(self, warp, op, threads):
        return self.tmem(warp, op, threads, "w", "st")

    def tmem_wait(self, warp, threads, kind: str) -> bool:
        bits = self.group_wait(kind, warp, 0, all_of=True)
        if bits is None:
            return False
        for t in threads:
            self.know[t] |= bits
            self.usable[t] |= bits
        return True

    def do_wait_ld(self, warp, op, threads):
        return self.tmem_wait(warp, threads, "ld")

    def do_wait_st(self, warp, op, threads):
        return self.tmem_wait(warp, threads, "st")

    def do_mma(self, warp, op, threads):
        """MMAs of one thread run in order (9.7.16.6.2)."""
        if len(threads) > 1:
            raise Undefined("several threads issue one MMA")
        for t in threads:
            rank, earlier = self.rank(t), self.mmas.setdefault(t, [])
            touches = [("s", rank, tile_words(op.a["tile"]), 1024, "r"), *mma_cells(rank, op.a["column"])]
            chain = sum(bit for _, bit in earlier)
            bit = self.node(op, t, "mma", touches, self.know[t] | chain, self.usable[t] | chain)
            self.awaited[bit] = ("cta", rank)
            earlier.append((self.start(lambda: None, [w for w, _ in earlier[-1:]]), bit))
        return True

    def do_tc_commit(self, warp, op, threads):
        if len(threads) > 1:
            raise Undefined("several threads commit")
        for t in threads:
            mine = self.mmas.get(t, [])
            bits = sum(bit for _, bit in mine)
            stamp = union(self.released([t]), (bits, bits | self.usable[t]))
            self.start(
                lambda stamp=stamp: self.signal(self.barriers[op.a["bar"]], op, stamp),
                [w for w, _ in mine[-1:]],
            )
        return True

    # ---- wgmma ----

    def do_wgmma(self, warp, op, threads):
        """One warp's share; the operation runs when all four warps have issued it."""
        group = warp // 4
        number = self.joined[warp] = self.joined.get(warp, 0) + 1
        rank, first = self.rank(threads[0]), tile_words(op.a["tile"])
        touches = [("s", rank, first + 128 * (warp % 4), 128, "r"), ("s", rank, first, 64, "r")]
        bit = self.node(op, threads[0], "mma", touches, self.released(threads)[0])
        shares = self.wgmmas.setdefault((group, number), [0, Async(lambda: None), 0, op.a.get("block")])
        if shares[3] != op.a.get("block"):
            raise Undefined("warps of a warpgroup execute different wgmma instructions")
        shares[0] |= bit
        shares[2] += 1
        if shares[2] == 4:
            self.flight.append(shares[1])
        self.open_group("wgmma", warp).append(shares)
        return True

    def do_wgmma_commit(self, warp, op, threads):
        self.commit("wgmma", warp)
        return True

    def do_wgmma_wait(self, warp, op, threads):
        groups = self.groups.get(("wgmma", warp), [[]])[:-1]
        covered = groups[: len(groups) - op.a["n"]] if op.a["n"] else groups
        items = [item for group in covered for item in group]
        if op.a["n"] == 0 and self.groups.get(("wgmma", warp), [[]])[-1]:
            self.early.add(op.id)  # the result is read next, but this work is in no group
        if not all(work.done for _, work, *_ in items):
            return False
        for bits, *_ in items:
            for t in threads:
                self.know[t] |= bits
        return True
