"""TVM's parser with less work for each expression gives the same values, trees and kernels."""

import ast
import inspect

import pytest
from tvm.script.parser._core import doc
from tvm.script.parser.core import evaluator

from instructor.solutions import gemm_kernels
from tirxlab.dialect import quick_eval
from tirxlab.toolchain.build import draft

NAMES = {
    "a": 3,
    "b": [5, 6, 7],
    "f": lambda *args, **named: (args, named),
    "d": {"k": 1},
    "s": "text",
    "none": None,
}
EXPRESSIONS = (
    "a",
    "len",
    "-1.5",
    "'quote\\'s\\n'",
    "b[0]",
    "b[1:]",
    "(a, *b)",
    "[]",
    "()",
    "f(a, *b, x=1, **d)",
    "f(f(a)[0], (), [a])",
    "s.upper()",
    "(1).real",
    "1e400",
    "True",
    "a + 1 if a else b",
    "[x for x in b]",
    "{'k': a}",
    "lambda: a",
)


def _tvm_copy(tree):
    """TVM's own copy of a tree, through its registry."""
    return doc.Registry._inst.table[type(tree).__name__].to_doc(tree)


def _same(one, other) -> bool:
    if isinstance(one, doc.AST):
        return type(one) is type(other) and all(
            _same(getattr(one, f), getattr(other, f)) for f in one._FIELDS
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_has_the_value_that_tvm_gives_it(text):
    tree = ast.parse(text, mode="eval").body
    value, wanted = (
        evaluate(_tvm_copy(tree), dict(NAMES)) for evaluate in (quick_eval.evaluated, quick_eval._of_tvm)
    )
    assert type(value) is type(wanted)
    assert callable(value) or repr(value) == repr(wanted)


@pytest.mark.parametrize("text", ["unknown", "f(unknown)", "a.unknown", "b[9]", "a()", "f(*a)"])
def test_what_tvm_refuses_is_refused_alike(text):
    tree = _tvm_copy(ast.parse(text, mode="eval").body)
    raised = []
    for evaluate in (quick_eval.evaluated, quick_eval._of_tvm):
        with pytest.raises(Exception) as error:
            evaluate(tree, dict(NAMES))
        raised.append((type(error.value), str(error.value)))
    assert raised[0] == raised[1]


@pytest.mark.parametrize(
    "text, value", [("x", (1, 2)), ("x, y", (1, 2)), ("[x, *y]", (1, 2, 3)), ("__tvm_rhs_var__", 1)]
)
def test_a_value_goes_to_the_names_to_which_tvm_gives_it(text, value):
    target = _tvm_copy(ast.parse(f"{text} = 0").body[0].targets[0])
    assert quick_eval.assigned(target, value) == quick_eval._assign_of_tvm(target, value)


def test_a_function_ends_where_inspect_says():
    for function in (_same, _tvm_copy, quick_eval.copied, gemm_kernels.hgemm_v9):
        lines, first = inspect.findsource(function)
        ours = inspect.getblock(lines[first:])
        assert ours == quick_eval._block_of_inspect(lines[first:])
        ours.clear()  # each caller has its own list
        assert inspect.getsource(function).startswith("def ")


def test_trees_are_those_of_tvm():
    with open(gemm_kernels.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    assert _same(quick_eval.copied(tree), _tvm_copy(tree))


@pytest.mark.parametrize(("step", "size"), [(3, (256, 256, 64)), (9, (512, 768, 64))])
def test_kernels_are_the_same(step, size, monkeypatch):
    build = getattr(gemm_kernels, f"hgemm_v{step}")
    quick = draft(build(*size)).to_bytes()
    monkeypatch.setattr(evaluator, "_eval_expr", quick_eval._of_tvm)
    monkeypatch.setattr(evaluator.ExprEvaluator, "_visit", quick_eval._visit_of_tvm)
    monkeypatch.setattr(evaluator, "_eval_assign", quick_eval._assign_of_tvm)
    monkeypatch.setattr(inspect, "getblock", quick_eval._block_of_inspect)
    monkeypatch.setattr(doc, "to_doc", lambda tree: _tvm_copy(tree))
    assert draft(build(*size)).to_bytes() == quick
