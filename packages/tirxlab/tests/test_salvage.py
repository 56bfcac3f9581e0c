"""What remains of a kernels file with a syntax error."""

import random

import pytest

from tirxlab.porting import port
from tirxlab.salvage import runnable
from tirxlab.steps import StepError, read_skeleton, refuse_syntax_errors, sections

TEXT = read_skeleton()
BREAKS = (
    "(",
    "[1,",
    '"""',
    "def",
    "x = = 1",
    "  indented",
    "@",
    "return",
    "\x00",
    "class A(",
    "f'{'",
    "else:",
)


def test_a_file_without_errors_stays_as_it_is():
    assert runnable(TEXT, "k.py").text == TEXT and not runnable(TEXT, "k.py").broken


@pytest.mark.parametrize("seed", range(40))
def test_an_error_costs_its_own_step_and_no_line_moves(seed):
    """A line that is not Python, somewhere in a step."""
    rng = random.Random(seed)
    parts, step = sections(TEXT), rng.randint(1, 10)
    lines = parts[step].splitlines(keepends=True)
    lines.insert(rng.randrange(1, len(lines)), rng.choice(BREAKS) + "\n")
    parts[step] = "".join(lines)
    text = "".join(parts.values())
    try:
        refuse_syntax_errors(text, "k.py")
        return  # inside a comment or a docstring of the skeleton it may not be an error
    except StepError:
        pass
    found = runnable(text, "k.py")
    assert set(found.broken) == {step} and found.broken[step].startswith("k.py:")
    assert found.text.count("\n") == text.count("\n")
    ours, theirs = text.splitlines(), found.text.splitlines()
    assert all(a == b or not b for a, b in zip(ours, theirs, strict=True))
    others = [n for n in range(1, 11) if n != step]
    assert all(sections(found.text)[n] == sections(text)[n] for n in others if n != step - 1)


def test_what_stands_beside_the_broken_builder_is_kept():
    broken = "def hgemm_v1(M, N, K):\n    return (\n\n\n"
    text = f"import math\n\n\n{broken}@math.cache\ndef helper():\n    pass\n\n\nX = 1\n"
    found = runnable(text, "k.py")
    assert "helper" in found.text and "X = 1" in found.text and "hgemm_v1" not in found.text
    assert found.broken == {1: "k.py:5: '(' was never closed: return ("}


def test_an_error_before_the_first_step_costs_all():
    with pytest.raises(StepError, match="k.py:1:"):
        runnable("x = (\n" + TEXT, "k.py")


def test_a_port_that_keeps_lines_keeps_lines():
    text = "from tvm.tirx import (\n    S,\n    Odd,\n)\nx = 1\n"
    ported = port(text, keep_lines=True)[0]
    assert ported.splitlines()[4] == "x = 1" and "from tirxlab import S" in ported
