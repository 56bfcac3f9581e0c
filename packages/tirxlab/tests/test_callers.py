"""The calls of a helper that a finding's line is in."""

import textwrap

from tirxlab.explain.callers import called_at

TEXT = """
@Tx.inline
def store(D):
    D[0] = 1

def other(M):
    def kernel(D):
        store(D)

def builder(M):
    def kernel(D):
        @Tx.inline
        def load(k):
            D[k] = 0
        load(0)
        load(1)
        store(D)
"""


def test_the_calls_in_this_kernel_are_named():
    marks = "// @src 4\n// @src 14\n"
    said = [called_at(textwrap.dedent(TEXT), marks, line) for line in (4, 14, 17)]
    assert said == ["  # called at line 17", "  # called at lines 15 and 16", ""]
    assert called_at("def (", marks, 4) == ""
