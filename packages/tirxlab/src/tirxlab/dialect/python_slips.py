"""Refuses Python in a kernel that would run at parse time or do nothing at all, with line and remedy."""

import ast
import inspect
import textwrap

from .errors import KernelError

PRINT = (
    "print runs once, when the kernel is parsed, not on the GPU; "
    'in a kernel write Tx.cuda.printf("warp %d\\n", warp_id)'
)
F_STRING = (
    "an f-string is made when the kernel is parsed, not on the GPU; "
    'give the format and the values: Tx.cuda.printf("warp %d\\n", warp_id)'
)
TRY_WAIT = (
    "Tx.ptx.mbarrier.try_wait blocks until the phase has completed and gives no value: "
    "write it as a statement of its own, without a loop or a condition"
)
RETURN = "a kernel cannot return, nor can a function of it: what other threads still do goes under an `if`"
ASSERT = 'an assert in a kernel needs a text: assert condition, "what is wrong"'
NOT_THERE = ast.ClassDef | ast.Match | ast.Try | ast.AsyncFor | ast.AsyncWith | ast.Yield | ast.Await
OPERATORS = {ast.BitXor: "^", ast.Add: "+", ast.Sub: "-"}  # often meant to change a variable


def slips(function, file: str) -> list[KernelError]:
    """The errors for such statements in a kernel's source, in the order of the lines."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):  # no source: TVM reports that itself
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    nodes = [node for node in nodes if node is not tree.body[0]]
    found = sorted((node.lineno, reason) for node in nodes if (reason := problem(node)))
    return [KernelError(said, file, first + n - 1, lines[n - 1]) for n, said in found]


def problem(node: ast.AST) -> str:
    """What is wrong with a statement or a call; "" if nothing."""
    if isinstance(node, NOT_THERE):
        word = type(node).__name__.removesuffix("Def").lower()
        return f"a kernel cannot contain this Python statement ({word})"
    if isinstance(node, ast.NamedExpr):
        return "a kernel has no `:=`: assign on a line of its own"
    if isinstance(node, ast.Compare) and len(node.ops) > 1 and any(map(_bits, node.comparators[:-1])):
        return "`&` and `|` bind more tightly than `==`: write Tx.And(a, b) or Tx.Or(a, b)"
    if isinstance(node, ast.Return):
        return RETURN
    if isinstance(node, ast.Assert) and node.msg is None:
        return ASSERT
    if isinstance(node, ast.FunctionDef) and any("prim_func" in ast.unparse(d) for d in node.decorator_list):
        return "a function inside a kernel is written under @Tx.inline; Tx.prim_func makes a kernel"
    if isinstance(node, ast.Expr):
        return _without_effect(node.value)
    if isinstance(node, ast.For | ast.While) and node.orelse:
        return "a loop in a kernel has no `else`"
    if isinstance(node, ast.While | ast.If):
        return TRY_WAIT if any(_calls(part, "try_wait") for part in ast.walk(node.test)) else ""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name) and node.func.id == "print":
        return PRINT
    formatted = any(isinstance(arg, ast.JoinedStr) for arg in node.args)
    return F_STRING if formatted and _calls(node, "printf") else ""


def _bits(node: ast.AST) -> bool:
    """Whether this is `a & b` or `a | b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)


def _calls(node: ast.AST, name: str) -> bool:
    """Whether this is a call of `something.name`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _without_effect(value: ast.expr) -> str:
    """What is wrong with an expression that is a statement of its own; "" for a call."""
    text = ast.unparse(value)
    if isinstance(value, ast.Name | ast.Attribute):
        return f"this names `{text}` and does nothing; a call needs parentheses: {text}(...)"
    if isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq):
        return f"`{text}` compares, and the result is not used; `=` assigns a value to a variable"
    if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and type(value.op) in OPERATORS:
        return f"the value of `{text}` is not used: write {value.left.id} = {text}"
    if isinstance(value, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript):
        return f"the value of `{text}` is not used: this statement does nothing"
    return ""
