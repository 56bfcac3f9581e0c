"""Truth tables of the checks: a program that keeps a rule, and the one line that breaks it.

A `Rule` is a program of a few lines and a change of one of them. `check_kept` requires the program to be
clean under every order, `check_broken` requires the changed one to give its finding, and no other;
`kept_and_broken` makes the tests of a table.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import ptxsim

ORDERS = ("program", "adverse", 7)

# %t: thread; %lead: thread 0; %rank: CTA in the cluster; %sm: 16 KB of shared memory; %bar: two mbarriers
# after its first 8 KB; %mine, %other: shared words of this thread and of thread %t ^ 32; %in, %out: global
# arrays of 4096 words; %myin, %myout: this thread's words there; %w0, %w1, %w4: thread of that warp
START = """.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {directives} {{
.reg .b32 %t, %rank, %sm, %bar, %peer, %mine, %other, %x<16>, %r<8>, %o<8>;
.reg .b64 %in, %out, %myin, %myout, %y<16>; .reg .f32 %f<16>; .reg .pred %lead, %p, %q, %w0, %w1, %w4;
.shared .align 1024 .b8 buffer[32768];
mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %sm, buffer; add.u32 %bar, %sm, 8192;
shl.b32 %x0, %t, 2; add.u32 %mine, %sm, %x0; xor.b32 %other, %x0, 128; add.u32 %other, %sm, %other;
setp.eq.u32 %lead, %t, 0; setp.lt.u32 %w0, %t, 32; setp.ge.u32 %w4, %t, 128;
shr.u32 %x1, %t, 5; setp.eq.u32 %w1, %x1, 1;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;
cvt.u64.u32 %y0, %x0; add.u64 %myin, %in, %y0; add.u64 %myout, %out, %y0;
"""


@dataclass(frozen=True)
class Rule:
    name: str
    text: str  # one step per line
    change: tuple[str, str] = ("", "")  # part of one line, and its replacement in the broken program
    kind: str = ""  # of the broken program's finding
    severity: str = "error"
    words: str = ""  # in its message
    also: tuple[str, ...] = ()  # kinds of further findings, in some order
    orders: tuple = ORDERS  # in which the broken program shows the finding
    threads: int = 64
    ctas: int = 1  # of the grid
    cluster: int = 1
    target: str = "sm_100a"
    directives: str = ""  # of the kernel

    @property
    def broken(self) -> str:
        old, new = self.change
        if self.text.count(old) != 1:
            raise ValueError(f"{self.name}: {old!r} occurs {self.text.count(old)} times")
        return self.text.replace(old, new)


def wait(parity: int | str, at: int = 0) -> str:
    """A loop on an mbarrier of this CTA."""
    test = f"mbarrier.try_wait.parity.shared::cta.b64 %loop, [%bar+{at}], {parity}"
    return f"{{ .reg .pred %loop; AGAIN: {test}; @!%loop bra AGAIN; }}"


def lines(*steps: str) -> str:
    return "\n".join(steps)


def run_rule(rule: Rule, text: str, order) -> ptxsim.Result:
    data, out = np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32)
    shape = {"grid": max(rule.ctas, rule.cluster), "cluster": rule.cluster, "block": rule.threads}
    return _module(text, rule.target, rule.directives).launch("k", **shape, args=[data, out], order=order)


@functools.lru_cache(maxsize=4)
def _module(text: str, target: str, directives: str):
    start = START.format(target=target, directives=directives)
    return ptxsim.load(start + text + "\nret;\n}\n")


def check_kept(rule: Rule, order) -> None:
    result = run_rule(rule, rule.text, order)
    assert result.verdict == "clean", [str(f) for f in result.findings]


def check_broken(rule: Rule, order) -> None:
    changed = [a != b for a, b in zip(rule.text.split("\n"), rule.broken.split("\n"), strict=True)]
    assert sum(changed) == 1
    result = run_rule(rule, rule.broken, order)
    texts = [str(f) for f in result.findings]
    found = [f for f in result.findings if (f.kind, f.severity) == (rule.kind, rule.severity)]
    assert any(rule.words in f.message for f in found), texts
    assert {f.kind for f in result.findings} <= {rule.kind, *rule.also}, texts


def each(rules: tuple[Rule, ...]):
    """Parametrizes a test over rules and orders."""
    return _cases((rule, order) for rule in rules for order in ORDERS)


def kept_and_broken(rules: tuple[Rule, ...], legal: tuple[Rule, ...] = ()):
    """The tests of a table: `test_kept` under every order, and `test_broken` of the rules that are not always
    legal under the orders that show it.
    """

    @each((*rules, *legal))
    def test_kept(rule, order):
        check_kept(rule, order)

    @_cases((rule, order) for rule in rules for order in rule.orders)
    def test_broken(rule, order):
        check_broken(rule, order)

    return test_kept, test_broken


def _cases(pairs):
    cases = [pytest.param(rule, order, id=f"{order}-{rule.name}") for rule, order in pairs]
    return pytest.mark.parametrize(("rule", "order"), cases)
