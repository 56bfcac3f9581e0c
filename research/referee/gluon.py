"""Gluon kernels, right and with planted mistakes, under Triton's concurrency sanitizer and under ptxsim.

    python -m research.referee.gluon ptxsim            needs triton and torch, no GPU
    python -m research.referee.gluon consan            on a Hopper GPU, with triton and torch
    python -m research.referee.gluon alone             the same without the sanitizer

Each command prints one line a case as JSON: {"kernel: mistake": {"said", "result", "seconds"}}. Gluon is the
lower-level language of Triton: the program itself names buffers, mbarriers, copies and waits, so it can get
them wrong. Each copy has its own mbarrier, since the sanitizer of Triton 3.6 takes every copy for an arrival
(fixed by Triton's pull request 9046). A case runs in its own process, since a kernel that hangs or faults
ends the process.
"""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
import sys
import time

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import ampere, hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

SIDE, DEPTH, TILES = 64, 64, 8  # rows and columns of a tile of D, depth of a tile of K; tiles of K
JOBS = 6  # processes on a GPU
LIMIT = 60  # seconds a case may take on a GPU; a simulated one gets four times as long


@gluon.jit
def fill(a, b, full_a, full_b, stages_a, stages_b, k, there, more, unit: gl.constexpr, wrong: gl.constexpr):
    """Announces tile k of K and loads it into stage `there`, if `more` is true."""
    half: gl.constexpr = unit // 2 if wrong == "too few bytes announced" else unit
    told: gl.constexpr = unit * 2 if wrong == "too many bytes announced" else half
    column = k * a.block_shape[1]
    signal_a, signal_b = full_a.index(k % 2), full_b.index(k % 2)
    if wrong != "no announcement":
        mbarrier.expect(signal_a, told, pred=more)
        mbarrier.expect(signal_b, told, pred=more)
    tma.async_copy_global_to_shared(a, [0, column], signal_a, stages_a.index(there), pred=more)
    if wrong != "no load of B":
        tma.async_copy_global_to_shared(b, [0, column], signal_b, stages_b.index(there), pred=more)


@gluon.jit
def await_tile(full_a, full_b, k, wrong: gl.constexpr):
    """Waits for tile k of K."""
    stage = (k + 1) % 2 if wrong == "waits for the other stage" else k % 2
    flips = 0 if wrong == "the phase is never flipped" else k // 2
    parity = (flips + 1) & 1 if wrong == "the other parity" else flips & 1
    if wrong != "no wait for TMA":
        mbarrier.wait(full_a.index(stage), parity)
    if wrong != "no wait for TMA" and wrong != "no wait for B":
        mbarrier.wait(full_b.index(stage), parity)


@gluon.jit
def ring(a, b, d, tiles: gl.constexpr, side: gl.constexpr, depth: gl.constexpr, wrong: gl.constexpr):
    """D = A B^T, one tile: TMA fills two stages, wgmma reads them, TMA stores D."""
    count: gl.constexpr = 2 if wrong == "a barrier of two arrivals" else 1
    unit: gl.constexpr = side * depth * 2
    stages_a = gl.allocate_shared_memory(gl.float16, [2, side, depth], a.layout)
    stages_b = gl.allocate_shared_memory(gl.float16, [2, side, depth], b.layout)
    full_a = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    full_b = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full_a.index(i), count=count)
        mbarrier.init(full_b.index(i), count=count)
    hopper.fence_async_shared()
    total = gl.zeros([side, side], gl.float32, gl.NVMMADistributedLayout([3, 0], [4, 1], [16, side, 16]))
    fill(a, b, full_a, full_b, stages_a, stages_b, 0, 0, True, unit, wrong)
    for k in range(tiles):
        there = k % 2 if wrong == "the load goes to the stage in use" else (k + 1) % 2
        fill(a, b, full_a, full_b, stages_a, stages_b, k + 1, there, k + 1 < tiles, unit, wrong)
        await_tile(full_a, full_b, k, wrong)
        left, right = stages_a.index(k % 2), stages_b.index(k % 2).permute((1, 0))
        total = hopper.warpgroup_mma(left, right, total, is_async=True)
        if wrong == "one product more under way":
            total = hopper.warpgroup_mma_wait(1, deps=[total])
        else:
            total = hopper.warpgroup_mma_wait(0, deps=[total])
    total = hopper.warpgroup_mma_wait(0, deps=[total])
    out = gl.allocate_shared_memory(gl.float16, [side, side], d.layout)
    out.store(total.to(gl.float16))
    if wrong != "no proxy fence":
        hopper.fence_async_shared()
    tma.async_copy_shared_to_global(d, [0, 0], out)
    tma.store_wait(0)


@gluon.jit
def strips(a, b, d, tiles: gl.constexpr, side: gl.constexpr, depth: gl.constexpr, wrong: gl.constexpr):
    """D[:, i] = A[:, i] + B[:, i] in strips: TMA loads two, threads add, TMA stores from one buffer."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    left = gl.allocate_shared_memory(gl.float16, [side, depth], a.layout)
    right = gl.allocate_shared_memory(gl.float16, [side, depth], b.layout)
    out = gl.allocate_shared_memory(gl.float16, [side, depth], d.layout)
    full_a = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    full_b = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full_a, count=1)
    mbarrier.init(full_b, count=1)
    hopper.fence_async_shared()
    for k in range(tiles):
        mbarrier.expect(full_a, side * depth * 2)
        mbarrier.expect(full_b, side * depth * 2)
        tma.async_copy_global_to_shared(a, [0, k * depth], full_a, left)
        tma.async_copy_global_to_shared(b, [0, k * depth], full_b, right)
        parity = 0 if wrong == "the phase is never flipped" else k & 1
        if wrong != "no wait for TMA":
            mbarrier.wait(full_a, parity)
        if wrong != "no wait for TMA" and wrong != "no wait for B":
            mbarrier.wait(full_b, parity)
        value = left.load(layout) + right.load(layout)
        if wrong == "the store is waited for one too late":
            tma.store_wait(1)
        elif wrong != "no wait for the store":
            tma.store_wait(0)
        out.store(value)
        if wrong != "no proxy fence":
            hopper.fence_async_shared()
        tma.async_copy_shared_to_global(d, [0, k * depth], out)
    tma.store_wait(0)


@gluon.jit
def groups(a, b, d, tiles: gl.constexpr, side: gl.constexpr, depth: gl.constexpr, wrong: gl.constexpr):
    """D[:, i] = 2 A[:, i] in strips: cp.async fills two stages, threads read them. b is not used."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    stages = gl.allocate_shared_memory(gl.float16, [2, side, depth], gl.SwizzledSharedLayout(8, 1, 8, [1, 0]))
    rows = gl.arange(0, side, gl.SliceLayout(1, layout))[:, None] * (tiles * depth)
    cells = rows + gl.arange(0, depth, gl.SliceLayout(0, layout))[None, :]
    ampere.async_copy.async_copy_global_to_shared(stages.index(0), a + cells)
    ampere.async_copy.commit_group()
    for k in range(tiles):
        there = k % 2 if wrong == "the copy goes to the stage in use" else (k + 1) % 2
        if k + 1 < tiles:
            ampere.async_copy.async_copy_global_to_shared(stages.index(there), a + cells + (k + 1) * depth)
        if wrong != "no group":
            ampere.async_copy.commit_group()
        if wrong == "one group more under way":
            ampere.async_copy.wait_group(2)
        elif wrong != "no wait for a group":
            ampere.async_copy.wait_group(1)
        gl.store(d + cells + k * depth, stages.index(k % 2).load(layout) * 2)


RING = (
    "no wait for TMA",
    "no wait for B",
    "the phase is never flipped",
    "the other parity",
    "waits for the other stage",
    "the load goes to the stage in use",
    "too few bytes announced",
    "too many bytes announced",
    "no announcement",
    "no load of B",
    "a barrier of two arrivals",
    "one product more under way",
    "no proxy fence",
)
STRIPS = (
    "no wait for TMA",
    "no wait for B",
    "the phase is never flipped",
    "no wait for the store",
    "the store is waited for one too late",
    "no proxy fence",
)
GROUPS = (
    "no wait for a group",
    "one group more under way",
    "no group",
    "the copy goes to the stage in use",
)
KERNELS = {"Gluon ring": (ring, RING), "Gluon strips": (strips, STRIPS), "Gluon groups": (groups, GROUPS)}


def cases() -> list[str]:
    """All cases, by `kernel: mistake`."""
    return [f"{name}: {wrong}" for name, (_, mistakes) in KERNELS.items() for wrong in ("none", *mistakes)]


def launch(case: str) -> str:
    """Runs a case once; `right`, or how much of D is wrong. Raises RuntimeError if the launch faults."""
    name, _, wrong = case.partition(": ")
    kernel = KERNELS[name][0]
    torch.manual_seed(7)
    wide = TILES * DEPTH
    a, b = (torch.randint(-2, 3, (SIDE, wide), device="cuda").to(torch.float16) for _ in "ab")
    d = torch.full((SIDE, SIDE if kernel is ring else wide), 7.0, device="cuda", dtype=torch.float16)
    expected = a.float() @ b.float().T if kernel is ring else (a + b if kernel is strips else 2 * a).float()
    arguments = (a, b, d)
    if kernel is not groups:
        layout = gl.NVMMASharedLayout.get_default_for([SIDE, DEPTH], gl.float16)
        arguments = [TensorDescriptor.from_tensor(x, [SIDE, DEPTH], layout) for x in arguments]
    kernel[(1,)](*arguments, tiles=TILES, side=SIDE, depth=DEPTH, wrong=wrong, num_warps=4)
    torch.cuda.synchronize()
    share = float((d.float() != expected).float().mean())
    return "right" if share == 0 else f"{share:.0%} wrong"


def simulated(case: str) -> dict:
    """The case on ptxsim, in program and adverse order: the first finding of the worse run."""
    import ptxsim

    verdicts = []
    for order in ("program", "adverse"):
        result = "refused"
        with ptxsim.triton(order=order, quiet=True) as session:
            try:
                result = launch(case)
            except RuntimeError as error:
                result = str(error).splitlines()[0][:160]
        findings = [f for record in session.launches for f in record.findings]
        verdicts.append((session.verdict, findings, result))
    rank = ("clean", "review", "incomplete", "error")
    verdict, findings, result = max(verdicts, key=lambda v: rank.index(v[0]) if v[0] in rank else 3)
    first = next((f for f in findings if f.severity == verdict), None)
    return {
        "verdict": verdict,
        "said": f"{first.kind}: {first.message}"[:200] if first else "",
        "result": result,
    }


def consan(case: str) -> dict:
    """The case on the GPU with the sanitizer compiled in (an assertion on the device ends the launch)."""
    triton.knobs.compilation.instrumentation_mode = "consan"
    # ConSan keeps its tables in global scratch memory, which Triton takes from an allocator.
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    return {"said": "", "result": launch(case)}


def alone(case: str) -> dict:
    return {"said": "", "result": launch(case)}


def in_process(tool: str, case: str) -> dict:
    start, limit = time.perf_counter(), LIMIT * (4 if tool == "ptxsim" else 1)
    command = [sys.executable, "-m", "research.referee.gluon", tool, case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as late:
        text = (late.stderr or b"").decode(errors="replace")
        row = {"said": _asserted(text), "result": "hung"}
    else:
        lines = done.stdout.splitlines()
        row = json.loads(lines[-1]) if done.returncode == 0 and lines else {"said": "", "result": "failed"}
        row["said"] = row["said"] or _asserted(done.stderr)
        if row["result"] == "failed":
            row["last"] = (done.stderr.strip() or "?").splitlines()[-1][:200]
    return row | {"seconds": round(time.perf_counter() - start, 1)}


def _asserted(text: str) -> str:
    """The first message of a device-side assertion; "" if there is none."""
    line = next((line for line in text.splitlines() if "Assertion `" in line), "")
    return line.partition("Assertion `")[2].partition("`")[0]


JUDGES = {"ptxsim": simulated, "consan": consan, "alone": alone}


def main(tool: str, *case: str) -> None:
    if case:
        print(json.dumps(JUDGES[tool](case[0])))
        return
    with concurrent.futures.ThreadPoolExecutor(1 if tool == "ptxsim" else JOBS) as pool:
        for each, row in zip(cases(), pool.map(lambda each: in_process(tool, each), cases()), strict=True):
            print(json.dumps({each: row}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
