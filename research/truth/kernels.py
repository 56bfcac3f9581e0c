"""Random kernels without races, for comparing the simulator's paths: same memory and verdict on every path.

`kernel_of(seed)` is a `Kernel` of nested statements: scalar code, divergent branches and loops with trip
counts from data, exchanges through shared memory under CTA and cluster barriers, mbarrier phases in loops,
bulk copies in both directions, cp.async, shuffles, votes, reductions, atomics. Threads read each other's
words only across a barrier; collective operations are placed where the warp is converged.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

REGISTERS = 8  # values of a thread, %v0..
BAR, AREA, BULK = 16384, 0, 8192  # offsets in the shared buffer: mbarriers, one word per thread, a bulk stage
SHARED = 16384 + 64
WORDS = 40 * 1024  # of the output; each thread owns REGISTERS + 4 of them

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {{
.reg .b32 %t, %g, %rank, %sm, %mine, %peer, %lane, %a<8>, %v<{registers}>, %n<6>;
.reg .b64 %in, %out, %own, %y<6>; .reg .pred %lead, %p<8>, %q;
.shared .align 128 .b8 buffer[{shared}];
mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %sm, buffer; and.b32 %lane, %t, 31;
mov.u32 %a0, %ctaid.x; mad.lo.u32 %g, %a0, {threads}, %t; setp.eq.u32 %lead, %t, 0;
shl.b32 %a0, %t, 2; add.u32 %mine, %sm, %a0;
ld.param.u64 %in, [pin]; cvta.to.global.u64 %in, %in;
ld.param.u64 %out, [pout]; cvta.to.global.u64 %out, %out;
mul.wide.u32 %own, %g, {stride}; add.u64 %own, %out, %own;
@%lead mbarrier.init.shared.b64 [%sm+{bar}], {threads}; @%lead mbarrier.init.shared.b64 [%sm+{bar8}], 1;
st.shared.u32 [%mine], %t; fence.mbarrier_init.release.cluster; fence.proxy.async;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u32 %n0, 0; mov.u32 %n1, 0;
"""


@dataclass(frozen=True)
class Kernel:
    seed: int
    ptx: str
    grid: int
    cluster: int
    block: int


class Writer:
    """Appends statements; `depth` counts the divergent constructs around the current place."""

    def __init__(self, rng: random.Random, threads: int, cluster: int):
        self.rng, self.threads, self.cluster = rng, threads, cluster
        self.lines: list[str] = []
        self.labels = 0

    def put(self, text: str) -> None:
        self.lines.append(text)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def value(self) -> str:
        return f"%v{self.rng.randrange(REGISTERS)}"

    # ---- what a thread does by itself ----

    def scalar(self) -> None:
        d, a, b, c = (self.value() for _ in range(4))
        n = self.rng.randrange(1, 31)
        self.put(
            self.rng.choice([
                f"add.u32 {d}, {a}, {b};", f"sub.u32 {d}, {a}, {b};", f"xor.b32 {d}, {a}, {b};",
                f"mad.lo.u32 {d}, {a}, {b}, {c};", f"shl.b32 {d}, {a}, {n};", f"shr.u32 {d}, {a}, {n};",
                f"shr.s32 {d}, {a}, {n};", f"min.s32 {d}, {a}, {b};", f"max.u32 {d}, {a}, {b};",
                f"lop3.b32 {d}, {a}, {b}, {c}, {self.rng.randrange(256)};", f"popc.b32 {d}, {a};",
                f"prmt.b32 {d}, {a}, {b}, {self.rng.randrange(1 << 16)};", f"brev.b32 {d}, {a};",
                f"setp.lt.s32 %q, {a}, {b}; selp.b32 {d}, {c}, {a}, %q;",
                f"setp.gt.u32 %q, {a}, {b}; @%q add.u32 {d}, {d}, {n};",
                f"shf.l.wrap.b32 {d}, {a}, {b}, {n};", f"bfe.u32 {d}, {a}, {n}, 7;",
                f"mul.hi.u32 {d}, {a}, {b};", f"cvt.rn.f32.u32 %a0, {a}; cvt.rzi.u32.f32 {d}, %a0;",
            ])
        )  # fmt: skip

    def memory(self) -> None:
        """Accesses to this thread's own words."""
        v, at = self.value(), 4 * (REGISTERS + self.rng.randrange(2) * 2)
        self.put(
            self.rng.choice([
                f"st.shared.u32 [%mine], {v};", f"ld.shared.u32 {v}, [%mine];",
                f"st.global.v2.u32 [%own+{at}], {{{v}, {self.value()}}};",
                f"ld.global.v2.u32 {{{v}, %a1}}, [%own+{at}];",
                f"and.b32 %a2, {v}, 1020; cvt.u64.u32 %y0, %a2; add.u64 %y0, %in, %y0; "
                    f"ld.global.u32 {v}, [%y0];",
            ])
        )  # fmt: skip

    def alone(self, depth: int) -> None:
        kind = self.rng.random()
        if depth < 3 and kind < 0.2:
            self.branch(depth)
        elif depth < 3 and kind < 0.3:
            self.loop(depth)
        elif kind < 0.5:
            self.memory()
        else:
            self.scalar()

    def branch(self, depth: int) -> None:
        p, els, end = f"%p{depth}", self.label(), self.label()
        self.put(f"and.b32 %a3, {self.value()}, {self.rng.choice([1, 2, 4, 16])}; setp.ne.u32 {p}, %a3, 0;")
        self.put(f"@{p} bra {els};")
        self.several(depth + 1)
        self.put(f"bra {end};\n{els}:")
        if self.rng.random() < 0.7:
            self.several(depth + 1)
        self.put(f"{end}:")

    def loop(self, depth: int) -> None:
        """A loop with a data-dependent trip count of 0..7, sometimes with an exit in the middle."""
        n, p, top, end = f"%n{2 + depth}", f"%p{4 + depth}", self.label(), self.label()
        self.put(f"and.b32 {n}, {self.value()}, 7;\n{top}: setp.eq.u32 {p}, {n}, 0; @{p} bra {end};")
        self.put(f"sub.u32 {n}, {n}, 1;")
        self.several(depth + 1)
        if self.rng.random() < 0.3:
            self.put(f"setp.lt.s32 {p}, {self.value()}, {self.value()}; @{p} bra {end};")
        self.put(f"bra {top};\n{end}:")

    def several(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.alone(depth)

    # ---- collective operations, where all threads are converged ----

    def exchange(self) -> None:
        v, w = self.value(), self.value()
        other = self.rng.choice([1, 3, 16, 31, 32, 33])
        if other >= self.threads:
            other = 1
        self.put(f"st.shared.u32 [%mine], {v}; bar.sync 0;")
        if self.rng.random() < 0.3:
            self.put(f"st.global.u32 [%own+{4 * REGISTERS}], {w};")
        self.put(
            f"xor.b32 %a4, %t, {other}; shl.b32 %a4, %a4, 2; add.u32 %a4, %sm, %a4; ld.shared.u32 {w}, [%a4];"
        )
        self.put("bar.sync 1;")

    def cluster_exchange(self) -> None:
        v, meet = self.value(), "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        self.put(f"st.shared.u32 [%mine], {v}; {meet}")
        self.put(
            f"add.u32 %a4, %rank, 1; rem.u32 %a4, %a4, {self.cluster}; "
            f"mapa.shared::cluster.u32 %peer, %mine, %a4;"
        )
        self.put(f"ld.shared::cluster.u32 {self.value()}, [%peer]; {meet}")

    def warp(self) -> None:
        d, a, full = self.value(), self.value(), "0xffffffff"
        self.put(
            self.rng.choice([
                f"shfl.sync.bfly.b32 {d}, {a}, {self.rng.choice([1, 2, 16, 31])}, 31, {full};",
                f"shfl.sync.up.b32 {d}, {a}, {self.rng.randrange(1, 9)}, 0, {full};",
                f"shfl.sync.down.b32 {d}, {a}, {self.rng.randrange(1, 9)}, 31, {full};",
                f"and.b32 %a5, {a}, 31; shfl.sync.idx.b32 {d}, {a}, %a5, 31, {full};",
                f"setp.gt.s32 %q, {a}, {d}; vote.sync.ballot.b32 {d}, %q, {full};",
                f"redux.sync.add.u32 {d}, {a}, {full};", f"redux.sync.max.s32 {d}, {a}, {full};",
                f"match.any.sync.b32 {d}, {a}, {full};",
                f"elect.sync %a5|%q, {full}; @%q add.u32 {d}, {d}, %a5;",
            ])
        )  # fmt: skip

    def phase(self) -> None:
        """All threads arrive and wait; the parity is counted in %n0."""
        loop = self.label()
        self.put(f"st.shared.u32 [%mine], {self.value()}; mbarrier.arrive.shared.b64 _, [%sm+{BAR}];")
        self.put(
            f"{loop}: mbarrier.try_wait.parity.shared.b64 %q, [%sm+{BAR}], %n0; @!%q bra {loop}; "
            f"xor.b32 %n0, %n0, 1;"
        )
        self.put(f"xor.b32 %a4, %mine, 4; ld.shared.u32 {self.value()}, [%a4]; bar.sync 2;")

    def bulk(self) -> None:
        """A bulk copy of 4 B per thread to shared memory, read by all."""
        loop, size, at = self.label(), 4 * self.threads, 16 * self.rng.randrange(64)
        load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        self.put(f"add.u32 %a4, %sm, {BULK}; add.u32 %a5, %sm, {BAR + 8}; add.u64 %y1, %in, {at};")
        self.put(f"@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%a5], {size};")
        self.put(f"@%lead {load} [%a4], [%y1], {size}, [%a5];")
        self.put(
            f"{loop}: mbarrier.try_wait.parity.shared.b64 %q, [%a5], %n1; @!%q bra {loop}; "
            f"xor.b32 %n1, %n1, 1;"
        )
        self.put(f"xor.b32 %a6, %mine, 8; ld.shared.u32 {self.value()}, [%a6+{BULK}]; bar.sync 3;")

    def bulk_out(self) -> None:
        """Every thread writes a word, thread 0 copies them all to the end of the output and waits."""
        size = 4 * self.threads
        self.put(f"st.shared.u32 [%mine+{BULK}], {self.value()}; fence.proxy.async.shared::cta; bar.sync 4;")
        self.put(f"mov.u32 %a4, %ctaid.x; mad.lo.u32 %a4, %a4, {size}, {4 * WORDS}; cvt.u64.u32 %y1, %a4;")
        self.put(f"add.u64 %y1, %out, %y1; add.u32 %a5, %sm, {BULK};")
        self.put(f"@%lead cp.async.bulk.global.shared::cta.bulk_group [%y1], [%a5], {size};")
        self.put("@%lead cp.async.bulk.commit_group; @%lead cp.async.bulk.wait_group 0; bar.sync 5;")

    def cp_async(self) -> None:
        self.put(
            "mul.wide.u32 %y2, %t, 16; add.u64 %y2, %in, %y2; shl.b32 %a4, %t, 4; add.u32 %a4, %sm, %a4;"
        )
        self.put("bar.sync 6; cp.async.ca.shared.global [%a4], [%y2], 16; cp.async.commit_group;")
        self.put("cp.async.wait_group 0; bar.sync 7;")
        self.put(f"xor.b32 %a4, %a4, 32; ld.shared.u32 {self.value()}, [%a4]; bar.sync 6;")
        self.put("st.shared.u32 [%mine], %t; bar.sync 7;")  # restores the area of words

    def atomics(self) -> None:
        a = self.value()
        self.put("@%lead st.shared.u32 [%sm], 0; bar.sync 8;")
        self.put(f"and.b32 %a4, {a}, 255; red.shared.{self.rng.choice(['add', 'max'])}.u32 [%sm], %a4;")
        self.put(f"bar.sync 9; ld.shared.u32 {self.value()}, [%sm]; bar.sync 8;")

    def together(self) -> None:
        choices = [self.exchange, self.warp, self.warp, self.phase, self.bulk, self.bulk_out, self.atomics]
        choices += [self.cp_async] + [self.cluster_exchange] * (2 if self.cluster > 1 else 0)
        self.rng.choice(choices)()

    def uniform_loop(self) -> None:
        n, top = "%a7", self.label()
        self.put(f"mov.u32 {n}, {self.rng.randint(2, 4)};\n{top}:")
        for _ in range(self.rng.randint(1, 3)):
            self.together() if self.rng.random() < 0.6 else self.alone(0)
        self.put(f"sub.u32 {n}, {n}, 1; setp.ne.u32 %q, {n}, 0; @%q bra {top};")


def kernel_of(seed: int) -> Kernel:
    rng = random.Random(f"kernel {seed}")
    threads = 32 * rng.choice([1, 2, 2, 4, 4, 8])
    cluster = rng.choice([1, 1, 2, 4])
    grid = cluster * rng.choice([1, 2, 3])
    writer = Writer(rng, threads, cluster)
    stride = 4 * (REGISTERS + 4)
    head = HEAD.format(
        registers=REGISTERS, shared=SHARED, threads=threads, stride=stride, bar=BAR, bar8=BAR + 8
    )
    writer.put(head)
    for i in range(REGISTERS):
        writer.put(f"mad.lo.u32 %v{i}, %g, {rng.randrange(1 << 20)}, {rng.randrange(1 << 31)};")
    for _ in range(rng.randint(3, 9)):
        kind = rng.random()
        if kind < 0.45:
            writer.alone(0)
        elif kind < 0.85:
            writer.together()
        else:
            writer.uniform_loop()
    for i in range(REGISTERS):
        writer.put(f"st.global.u32 [%own+{4 * i}], %v{i};")
    writer.put("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n}")
    return Kernel(seed, "\n".join(writer.lines), grid, cluster, threads)
