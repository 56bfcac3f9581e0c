"""Copies that are hidden: in other letters, before the first step, after an error, in a file."""

import ast
import lzma
import re
from pathlib import Path

import pytest
from kernel_variants import REFERENCE, solved

from instructor.autograder.batch import bundle
from instructor.autograder.grading import refused
from instructor.autograder.similar import builds, built_alike, hiding, of_two_students, similar
from instructor.autograder.submission import Submission
from tirxlab.porting import port
from tirxlab.rubric import tomllib
from tirxlab.salvage import runnable
from tirxlab.sandbox import Builder
from tirxlab.steps import read_skeleton, sections

PARTS = sections(REFERENCE)
HANDS = Path(__file__).parents[2] / "research/advice/other_hands/mistakes.toml.xz"
HEAD = PARTS[0]
COPY = "".join(part.replace(f"def hgemm_v{n}(", f"def _k{n}(") for n, part in PARTS.items() if n)
STEPS = {n: f"def hgemm_v{n}(M, N, K):\n    return _k{n}(M, N, K)\n\n\n" for n in PARTS if n}
CALLS = "".join(STEPS.values())
ELSEWHERE = {  # where the copied text is, instead of in its steps
    "before the first step": HEAD + COPY + CALLS,
    "behind an error, in a text for who reads it whole": (
        HEAD
        + f"{STEPS[1]})(\nx = '''\n{COPY}"
        + "".join(STEPS[n] for n in range(2, 10))
        + f'{STEPS[10]}y = """ \'\'\'"""  # """\n'
    ),
    "in the last step": HEAD + CALLS + COPY,
}
OUT_OF_SIGHT = {  # one line that runs or writes text, and what stands there in an honest file
    "exec(TEXT)": "print(TEXT)",
    "\uff45\uff58\uff45\uff43(TEXT)": "print(TEXT)",
    "__builtins__['ex' 'ec'](TEXT)": "TEXT['ex' 'ec']",
    "print.__self__": "print.self",
    "open(__file__, 'a').write(TEXT)": "TEXT.write()",
    "import numpy as np; np.array(TEXT).tofile('x.py')": "import numpy as np; np.array(TEXT)",
    "from tirxlab.steps import load_kernels": "from tirxlab import TMABar",
    "from tirxlab import steps": "from tirxlab import Tx as steps",
    "from tvm.script import from_source": "from tvm.script import tirx as T",
    "from builtins import exec as e": "from functools import partial as e",
    "import marshal": "import math",
    "import numpy as np; import runpy": "import numpy as np; import math",
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_a_copy_is_found_wherever_it_stands(where):
    text = ELSEWHERE[where]
    assert not {2, 9} & set(runnable(text, "k.py").broken)  # it is what runs
    ((_, _, part),) = similar({"copy": text, "first": REFERENCE})
    assert part > 0.9


class Wrapped(ast.NodeTransformer):
    """Wraps each argument that is a name, a part or a number in `form`, which does not change its value."""

    def __init__(self, form: str):
        self.form = form

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        node.args = [self.wrapped(one) for one in node.args]
        return node

    def wrapped(self, one: ast.expr) -> ast.expr:
        if not isinstance(one, ast.Name | ast.Attribute | ast.Subscript):
            return one
        return ast.parse(self.form.replace("x", f"({ast.unparse(one)})"), mode="eval").body


@pytest.mark.parametrize(
    "form",
    [
        *(
            "(x if True else 0)",
            "x + 0",
            "1 * x",
            "(x or 0)",
            "(1 and x)",
            "(x, 1)[0]",
            "[x][0]",
            "{0: x}[0]",
        ),
        *("(lambda: x)()", "(q := x)", "+ x", "- -x", "abs(x)", "x + 3 - 3"),
    ],
)
def test_a_copy_whose_every_argument_is_dressed_up_is_found(form):
    copy = ast.unparse(ast.fix_missing_locations(Wrapped(form).visit(ast.parse(REFERENCE))))
    ((_, _, part),) = similar({"copy": copy, "first": REFERENCE})
    assert part > 0.7


def test_a_copy_is_found_whose_calls_have_names_of_its_own_and_that_builds_other_code():
    calls = sorted(set(re.findall(r"\bTx(?:\.\w+)+(?=\()", REFERENCE)) - {"Tx.prim_func"}, key=len)[::-1]
    names = {call: f"call_{n}" for n, call in enumerate(calls)}
    copy = re.sub(r"\bTx(?:\.\w+)+(?=\()", lambda m: names.get(m[0], m[0]), REFERENCE)
    given = "".join(f"{name} = {call}\n" for call, name in names.items())
    copy = copy.replace("TMEM_COLS = 512", f"{given}TMEM_COLS = 256")
    ((_, _, part),) = similar({"copy": copy, "first": REFERENCE})
    assert part > 0.9


def test_independent_work_is_not_alike():
    hands = tomllib.loads(lzma.decompress(HANDS.read_bytes()).decode())["hands"]
    assert len(hands) == 3 and similar(hands | {"reference": REFERENCE}) == []


def test_what_all_have_at_the_head_of_a_file_is_no_likeness():
    given = sections(read_skeleton())
    texts = {f"step {n}": "".join({**given, n: PARTS[n]}.values()) for n in (1, 4, 8)} | {"none": given[0]}
    assert similar(texts) == []


class _Dressed(ast.NodeTransformer):
    """Adds a statement after each one but returns, or "if True:" around each one that calls something."""

    def __init__(self, statement: str):
        self.more = [] if statement == "if True:" else ast.parse(statement).body

    def visit_FunctionDef(self, node):
        return self._longer(node, 1 if ast.get_docstring(node) else 0)

    def visit_With(self, node):
        return self._longer(node, 0)

    visit_For = visit_If = visit_With

    def _longer(self, node, head: int):
        self.generic_visit(node)
        node.body = node.body[:head] + [one for old in node.body[head:] for one in self._two(old)]
        return node

    def _two(self, one) -> list:
        if self.more or isinstance(one, ast.Return):
            return [one, *self.more] if not isinstance(one, ast.Return) else [one]
        calls = isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
        return [ast.If(ast.Constant(True), [one], [])] if calls else [one]


@pytest.mark.parametrize(
    "statement", ["_u = Tx.meta_var(0)", "_u = range(3).__len__()", "_u = 'x'.join([])", "if True:"]
)
def test_a_copy_is_found_between_statements_that_build_nothing(statement):
    """The language accepts all of them, and builds the same kernel."""
    dressed = ast.unparse(ast.fix_missing_locations(_Dressed(statement).visit(ast.parse(REFERENCE))))
    ((_, _, part),) = similar({"copy": dressed, "first": REFERENCE})
    assert part > 0.9


IDLE = {  # what stands at the head of the file, and between all statements
    "a function that does nothing": ("def idle(*_):\n    pass\n", "idle(0, 0)"),
    "one that computes": ("def idle(a, b):\n    return a + b\n", "idle(0, 0)"),
    "one that keeps": ("KEPT = []\n\n\ndef idle(a):\n    KEPT.append(a)\n", "idle(a=0)"),
    "a lambda": ("idle = lambda *_: None\n", "_u = idle(0, 0)"),
    "an object": ("class Idle:\n    def go(self, a, b):\n        pass\n\n\nidle = Idle()\n", "idle.go(0, 0)"),
    "a part": ("import functools\nidle = functools.partial(max, 0)\n", "idle(0, 0)"),
    "one of a list": ("idle = [lambda *_: None]\n", "idle[0](0, 0)"),
    "data": ("idle = {}\n", "idle.update()"),
    "a module": ("import math\n", "math.floor(0, 0)"),
}


@pytest.mark.parametrize("how", IDLE)
def test_a_copy_is_found_between_calls_that_build_nothing(how):
    """One line builds different CUDA, so comparing the CUDA does not help."""
    head, call = IDLE[how]
    dressed = ast.unparse(ast.fix_missing_locations(_Dressed(call).visit(ast.parse(PARTS[4]))))
    changed = re.sub(r"^ +Tx\.cuda\.cta_sync\(\)$", r"\g<0>\n\g<0>", dressed, count=1, flags=re.M)
    assert changed != dressed
    given = sections(read_skeleton())[0]
    ((_, _, part),) = similar({"copy": f"{given}{head}\n\n{changed}", "first": given + PARTS[4]})
    assert part > 0.9


def test_a_call_that_hands_back_its_argument_reads_as_its_argument():
    wrapped = re.sub(r"\b(BLK_[MNK]|K_TILES)\b(?! *=)", r"same(\1)", PARTS[4])
    assert wrapped.count("same(") > 10
    ((_, _, part),) = similar(
        {"copy": f"{HEAD}def same(x):\n    return x\n\n\n{wrapped}", "first": HEAD + PARTS[4]}
    )
    assert part > 0.9


def _bundle(text: str) -> bytes:
    with Builder(text) as builder:
        built = builder.build(4, (256, 256, 128))
    made = refused("", "", (4,))
    made.artifacts = {"step4-256x256x128.lab": built.artifact.to_bytes()}
    return bundle(Submission("", text), made)


def test_a_copy_whose_text_tells_nothing_is_found_by_what_it_builds():
    """Calls that do nothing are between its statements, of functions that the file does not define."""
    tree = _Dressed("max.__call__(0, 1)").visit(ast.parse(solved(4)))
    dressed = ast.unparse(ast.fix_missing_locations(tree))
    texts = {"one": solved(4), "other": dressed}
    assert similar(texts) == [] and hiding(texts) == set()
    made, _ = builds((key, _bundle(text)) for key, text in texts.items())
    assert built_alike(made, set()) == [("one", "other", 1.0)]
    assert built_alike(made, set(), listed=[("one", "other", 0.7)]) == []


@pytest.mark.parametrize("line", OUT_OF_SIGHT)
def test_text_that_can_run_what_is_not_in_sight_is_compared_by_what_it_builds(line):
    texts = {"one": f"{HEAD}TEXT = ''\n{line}\n{COPY}", "other": f"{HEAD}TEXT = ''\n{OUT_OF_SIGHT[line]}\n"}
    assert hiding(texts) == {"one"}


def test_no_file_of_ours_hides_anything():
    old = re.sub(
        r"from tirxlab import \(.*?\)", "from tvm.script import tirx as Tx", REFERENCE, count=1, flags=re.S
    )
    assert port(old)[1] == []
    assert hiding({"reference": REFERENCE, "skeleton": read_skeleton(), "old": old}) == set()


def test_attempts_of_one_student_are_no_copies():
    """Three attempts of each of a hundred students would be as many pairs as the page lists."""
    pairs = [(one, other, 1.0) for one, other in (("a1", "a2"), ("a1", "b"), ("c", "d"), ("a1", "stranger"))]
    roster = {"a1": {"student": "ann"}, "a2": {"student": "ann"}, "b": {"student": "bob"}, "c": {}, "d": {}}
    assert of_two_students(pairs, roster) == pairs[1:]
