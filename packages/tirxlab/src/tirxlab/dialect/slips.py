"""Python that would run when a kernel is parsed, not on the GPU: refused, with line and remedy."""

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


def refuse_host_output(function, file: str) -> None:
    """KernelError at the first `print(...)` or `printf(f"...")` of a kernel's source."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):  # no source: TVM says so itself
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (reason := problem(node)):
            raise KernelError(reason, file, first + node.lineno - 1, lines[node.lineno - 1])


def problem(node: ast.AST) -> str:
    """What is wrong with a call, or ""."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name) and node.func.id == "print":
        return PRINT
    is_printf = isinstance(node.func, ast.Attribute) and node.func.attr == "printf"
    return F_STRING if is_printf and any(isinstance(arg, ast.JoinedStr) for arg in node.args) else ""
