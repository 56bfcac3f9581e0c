"""PTX kernels of one CTA for tests: registers from a global array, some instructions, registers back."""

from __future__ import annotations

import numpy as np

import ptxsim

HEAD = ".version 9.0\n.target {target}\n.address_size 64\n"


def vector(prefix: str, first: int, count: int) -> str:
    """`{%r4, %r5}`; one register has no braces."""
    names = [f"%{prefix}{first + i}" for i in range(count)]
    return "{" + ", ".join(names) + "}"


def register_kernel(
    text: str, inputs: int, outputs: int, width: int = 32, shared: int = 0, target: str = "sm_90a"
) -> str:
    """PTX of a kernel (in, out): register i of thread t is in[i * threads + t]; `text` maps %r0.. to %o0...

    width: 32 or 64 bits of each register. In `text`, %t is the thread, %n the number of threads, %sm a shared
    address of `shared` bytes, %p true, %q false.
    """
    size, kind = width // 8, f"b{width}"
    load = [f"ld.global.{kind} %r{i}, [%in]; add.u64 %in, %in, %step;" for i in range(inputs)]
    store = [f"st.global.{kind} [%out], %o{i}; add.u64 %out, %out, %step;" for i in range(outputs)]
    buffer = f".shared .align 1024 .b8 buffer[{shared}];" if shared else ""
    return f"""{HEAD.format(target=target)}
.visible .entry k(.param .u64 pin, .param .u64 pout) {{
.reg .{kind} %r<{max(inputs, 1)}>; .reg .{kind} %o<{max(outputs, 1)}>;
.reg .b64 %in, %out, %step, %wide; .reg .b32 %t, %n, %sm, %x<16>; .reg .pred %p, %q; .reg .b64 %y<16>;
{buffer}
mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;
mul.wide.u32 %wide, %t, {size}; add.u64 %in, %in, %wide; add.u64 %out, %out, %wide;
mul.wide.u32 %step, %n, {size};
setp.eq.u32 %p, %t, %t; setp.ne.u32 %q, %t, %t;
{"mov.u32 %sm, buffer;" if shared else ""}
{chr(10).join(load)}
{text}
{chr(10).join(store)}
ret;
}}
"""


def run_registers(
    ptx: str, data: np.ndarray, outputs: int, order="program", expect="clean", trace=False
) -> np.ndarray:
    """Runs a register kernel: data (inputs, threads) -> (outputs, threads), same dtype.

    expect: the verdict that the run must have; None: any. trace: each unit instruction goes to its handler.
    """
    threads = data.shape[1]
    out = np.zeros((outputs, threads), data.dtype)
    args = [np.ascontiguousarray(data), out]
    result = ptxsim.load(ptx).launch("k", block=threads, args=args, order=order, trace=trace)
    assert expect is None or result.verdict == expect, result.findings
    return out
