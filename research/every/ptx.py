"""A small program as PTX; each step is on the line after its `// @src` mark (100 * warp + step + 1)."""

from __future__ import annotations

from research.every.programs import BARS, FLAGS, SLOTS, Program, source_line

_BYTES = 16  # of a slot
_ENDS = (  # what a warp that has used one of these verbs executes at its end
    ({"put"}, "@%lead cp.async.bulk.commit_group;"),
    ({"put", "store"}, "@%lead cp.async.bulk.wait_group 0;"),
    ({"cp"}, "@%lead cp.async.wait_all;"),
)
_BAR_AT, _FLAG_AT = _BYTES * SLOTS, _BYTES * SLOTS + 8 * BARS
_TAKEN = 1  # CTA barriers below this one belong to the kernel's frame

_HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {{
.reg .b32 %t, %lane, %w, %sm, %r<4>, %acc; .reg .b64 %in, %out, %y<2>; .reg .pred %lead, %me, %p, %q;
.shared .align 128 .b8 buffer[{size}];
mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; shr.u32 %w, %t, 5; mov.u32 %sm, buffer; mov.u32 %acc, 0;
ld.param.u64 %in, [pin]; cvta.to.global.u64 %in, %in;
ld.param.u64 %out, [pout]; cvta.to.global.u64 %out, %out;
setp.eq.u32 %lead, %lane, 0; setp.eq.u32 %p, %t, 0;
// @src 900000
"""


def ptx_of(program: Program) -> str:
    parts = [_HEAD.format(size=_FLAG_AT + 4 * FLAGS)]
    parts += [f"@%p st.shared.u32 [%sm+{at}], 0;" for at in (*range(0, _BAR_AT, 4), _FLAG_AT, _FLAG_AT + 4)]
    for number, count in enumerate(program.bars):
        parts.append(f"@%p mbarrier.init.shared::cta.b64 [%sm+{_BAR_AT + 8 * number}], {count};")
    parts.append("fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;")
    for warp, steps in enumerate(program.warps):
        parts.append(f"setp.ne.u32 %me, %w, {warp}; @%me bra W{warp};")
        for number, (verb, *numbers) in enumerate(steps):
            line = source_line(warp, number)
            parts.append(f"// @src {line}\n{_TEXTS[verb](program, line, *numbers)}")
        verbs = {step[0] for step in steps}
        ends = [text for some, text in _ENDS if verbs & some]
        parts += ["// @src 900001", *ends] if ends else []
        parts.append(f"W{warp}:")
    end = "mul.wide.u32 %y0, %t, 4; add.u64 %y0, %out, %y0; st.global.u32 [%y0], %acc;"
    return "\n".join([*parts, "// @src 900001", "bar.sync 0;", end, "ret;\n}"])


def _loop(line: int, test: str) -> str:
    return f"L{line}: {test} @!%p bra L{line};"


def _wait(program, line, bar, parity):
    return _loop(line, f"mbarrier.try_wait.parity.shared::cta.b64 %p, [%sm+{_BAR_AT + 8 * bar}], {parity};")


def _load(program, line, slot, bar):
    places = f"add.u32 %r1, %sm, {_BYTES * slot}; add.u32 %r2, %sm, {_BAR_AT + 8 * bar};"
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    return f"{places} @%lead {copy} [%r1], [%in], {_BYTES}, [%r2];"


def _put(program, line, slot):
    places = f"add.u32 %r1, %sm, {_BYTES * slot}; add.u64 %y1, %out, {4096 + _BYTES * line};"
    return f"{places} @%lead cp.async.bulk.global.shared::cta.bulk_group [%y1], [%r1], {_BYTES};"


def _cp(program, line, slot):
    places = f"add.u32 %r1, %sm, {_BYTES * slot}; add.u64 %y1, %in, {_BYTES * line};"
    return f"{places} @%lead cp.async.ca.shared.global [%r1], [%y1], {_BYTES};"


def _if(line: int, setup: str, then: str) -> str:
    """The steps `then` for lane 0 if `setup` sets %q; the other lanes skip them."""
    return f"@!%lead bra S{line}; {setup} @!%q bra S{line}; {then} S{line}:"


def _peek(program, line, flag, slot):
    read = f"ld.acquire.gpu.shared.u32 %r0, [%sm+{_FLAG_AT + 4 * flag}]; setp.ge.u32 %q, %r0, 1;"
    return _if(line, read, _TEXTS["ld"](program, line, slot))


def _test(program, line, bar, parity, slot):
    test = f"mbarrier.test_wait.parity.shared::cta.b64 %q, [%sm+{_BAR_AT + 8 * bar}], {parity};"
    return _if(line, test, _TEXTS["ld"](program, line, slot))


def _add(flag: int, compare: str) -> str:
    add = f"atom.acq_rel.gpu.shared.add.u32 %r0, [%sm+{_FLAG_AT + 4 * flag}], 1;"
    return f"{add} setp.{compare}.u32 %q, %r0, 0;"


def _first(program, line, flag, slot):
    return _if(line, _add(flag, "eq"), _TEXTS["st"](program, line, slot))


def _later(program, line, flag, slot):
    return _if(line, _add(flag, "ne"), _TEXTS["ld"](program, line, slot))


def _count(program, line, flag, need):
    read = f"ld.acquire.gpu.shared.u32 %r0, [%sm+{_FLAG_AT + 4 * flag}]; setp.ge.u32 %p, %r0, {need};"
    return _loop(line, f"{read} @!%p nanosleep.u32 100;")


_TEXTS = {
    "st": lambda p, n, slot: f"mov.u32 %r0, {n}; @%lead st.shared.u32 [%sm+{_BYTES * slot}], %r0;",
    "ld": lambda p, n, slot: (
        f"@%lead ld.shared.u32 %r0, [%sm+{_BYTES * slot}]; @%lead add.u32 %acc, %acc, %r0;"
    ),
    "fence": lambda p, n: "@%lead fence.proxy.async.shared::cta;",
    "arrive": lambda p, n, bar: f"@%lead mbarrier.arrive.shared::cta.b64 _, [%sm+{_BAR_AT + 8 * bar}];",
    "expect": lambda p, n, bar: (
        f"@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%sm+{_BAR_AT + 8 * bar}], {_BYTES};"
    ),
    "wait": _wait,
    "load": _load,
    "put": _put,
    "close": lambda p, n: "@%lead cp.async.bulk.commit_group;",
    "store": lambda p, n, slot: f"{_put(p, n, slot)} @%lead cp.async.bulk.commit_group;",
    "left": lambda p, n, few: f"@%lead cp.async.bulk.wait_group.read {few};",
    "cp": _cp,
    "commit": lambda p, n: "@%lead cp.async.commit_group;",
    "keep": lambda p, n, few: f"@%lead cp.async.wait_group {few};",
    "signal": lambda p, n, bar: (
        f"@%lead cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%sm+{_BAR_AT + 8 * bar}];"
    ),
    "drain": lambda p, n: "@%lead cp.async.bulk.wait_group.read 0;",
    "sync": lambda p, n, number: f"bar.sync {number + _TAKEN}, {32 * p.meets[number]};",
    "meet": lambda p, n, number: f"bar.arrive {number + _TAKEN}, {32 * p.meets[number]};",
    "set": lambda p, n, flag: f"@%lead st.release.gpu.shared.u32 [%sm+{_FLAG_AT + 4 * flag}], 1;",
    "add": lambda p, n, flag: f"@%lead red.release.gpu.shared.add.u32 [%sm+{_FLAG_AT + 4 * flag}], 1;",
    "poll": lambda p, n, flag: _count(p, n, flag, 1),
    "count": _count,
    "peek": _peek,
    "test": _test,
    "first": _first,
    "later": _later,
}
