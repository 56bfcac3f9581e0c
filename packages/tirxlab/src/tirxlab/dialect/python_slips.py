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
OPERATORS = {ast.BitXor: "^", ast.Add: "+", ast.Sub: "-"}  # often meant to change a variable


def slips(function, file: str) -> list[KernelError]:
    """The errors for such statements in a kernel's source, in the order of the lines."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):  # no source: TVM reports that itself
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Call)]
    found = sorted((node.lineno, reason) for node in nodes if (reason := problem(node)))
    return [KernelError(said, file, first + n - 1, lines[n - 1]) for n, said in found]


def problem(node: ast.AST) -> str:
    """What is wrong with a statement or a call; "" if nothing."""
    if isinstance(node, ast.Expr):
        return _without_effect(node.value)
    if isinstance(node, ast.While | ast.If):
        return TRY_WAIT if any(_calls(part, "try_wait") for part in ast.walk(node.test)) else ""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name) and node.func.id == "print":
        return PRINT
    formatted = any(isinstance(arg, ast.JoinedStr) for arg in node.args)
    return F_STRING if formatted and _calls(node, "printf") else ""


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
