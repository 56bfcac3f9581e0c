"""Machine code that a wheel contains, so that a first run does not have to compile.

    python -m ptxsim.jit.shipped [COMMAND ARGS]    before the wheel is built, once for each Python

numba keeps machine code under the processor that compiled it. The code here is compiled for a processor that
most computers support, and used by all of them that have the same numba, Python and operating system.
Whatever else a launch needs is compiled as usual, and so is everything if something differs: the names of the
files are hashes of what they were made from.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

PROCESSOR = "x86-64-v3"  # of 2013 and later
NEEDS = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")  # CPU features
TRIPLE = "x86_64-unknown-linux-gnu"
# Calls most compiled code: one warp; functions that the loop calls by address; many CTAs of several warps.
EXERCISE = '''
import numpy as np, ptxsim
tiles = """.version 8.7
.target sm_80
.address_size 64
.visible .entry tiles(.param .u64 a, .param .u64 b) {
    .reg .b64 %a, %b, %o; .reg .b32 %t, %s, %i; .reg .f32 %x, %y; .reg .pred %p;
    .shared .align 4 .b8 tile[1024];
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b];
    mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mad.lo.u32 %i, %i, 256, %t; mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o; add.u64 %b, %b, %o;
    mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s; mov.f32 %y, 0f00000000; mov.u32 %i, 0;
AGAIN:
    ld.global.f32 %x, [%a]; st.shared.f32 [%s], %x; bar.sync 0;
    xor.b32 %t, %s, 128; ld.shared.f32 %x, [%t]; fma.rn.f32 %y, %x, 0f40000000, %y; bar.sync 0;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 4; @%p bra AGAIN;
    st.global.f32 [%b], %y; ret;
}
"""
ptxsim.warm_up()
from ptxsim.jit.called import address_of
from ptxsim.units.registry import UNITS
for spec in UNITS.values():
    if spec.fast and spec.fast.called:
        address_of(spec.fast.called)
for order in ("program", "adverse"):
    a, b = np.zeros((2, 64 * 256), np.float32)
    for checks in (True, False):
        ptxsim.load(tiles).launch("tiles", grid=64, block=256, args=[a, b], order=order, checks=checks)
'''


@functools.cache
def compiler() -> str:
    """The compiler's version; others cannot load its machine code. Importing numba for that takes 0.2 s."""
    return f"numba-{importlib.metadata.version('numba')}-{sys.implementation.cache_tag}"


def folder() -> Path:
    """The folder of the code for this numba and Python; it may not exist."""
    return Path(__file__).parents[1] / "compiled" / compiler()


@functools.cache
def usable() -> bool:
    """Whether there is such code and this processor can run it."""
    return folder().is_dir() and not _lacking()


def misfit() -> str:
    """Why the code in a wheel cannot be used here; "" if it can, or if there is none."""
    brought = sorted(path.name for path in folder().parent.glob("numba-*"))
    if not brought or usable():
        return ""
    if folder().name not in brought:
        return f"it was made for {', '.join(brought)}, but this is {folder().name}"
    return f"it was made for {PROCESSOR}, and this processor lacks {', '.join(_lacking())}"


def _lacking() -> list[str]:
    """What the code needs and this computer lacks."""
    from llvmlite import binding  # takes 0.05 s, and is only needed if there is such code

    if binding.get_process_triple() != TRIPLE:
        return [TRIPLE]
    features = binding.get_host_cpu_features()
    return [one for one in NEEDS if not features.get(one)]


def holds(module: str) -> bool:
    """Whether the usable code contains this generated module."""
    return usable() and any(folder().glob(f"{module}.*.code"))


def shipped_key(key: tuple) -> tuple:
    """numba's key of a function, as it was on the computer that compiled the code."""
    signature, _, made_of = key
    return signature, (TRIPLE, PROCESSOR, ""), made_of


def main(command: list[str]) -> None:
    """Compiles what most launches call, and what a command calls, too, into the folder of the wheel."""
    folder().mkdir(parents=True, exist_ok=True)
    made_for = {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": "", "PTXSIM_CACHE": str(folder())}
    for one in ([sys.executable, "-c", EXERCISE], command):
        if one:
            subprocess.run(one, env=os.environ | made_for | {"PTXSIM_JOBS": "2"}, check=True)
    for path in folder().iterdir():
        if path.is_file() and path.suffix != ".code":
            path.unlink()
    kept = list(folder().glob("*.code"))
    print(f"{len(kept)} functions, {sum(path.stat().st_size for path in kept) / 1e6:.1f} MB in {folder()}")


if __name__ == "__main__":
    main(sys.argv[1:])
