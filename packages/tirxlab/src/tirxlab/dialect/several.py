"""Reports all refused statements of a kernel at once: the parser continues after an error.

TVM's parser stops at the first error. Here each statement of the student's own source is tried. The error of
a refused one is kept, and the names that it would have defined are `lost`: errors of statements that read
these are not reported.
"""

from tvm.script.parser.core import doc
from tvm.script.parser.core.parser import Parser

from .errors import KernelError, is_students, kernel_error, place_of
from .state import state, state_or_none

_visit_body = Parser.visit_body


def visit_body(parser: Parser, statements: list) -> None:
    """Replaces TVM's method: visits the statements of a block, each on its own in the student's source."""
    source = parser.diag.source
    current = state_or_none()
    if current is None or not is_students(source.source_name):
        return _visit_body(parser, statements)
    before = current.source, current.line, current.caller
    if source is not before[0]:  # of a function that the statement at `line` calls
        current.source, current.caller = source, before[1]
    for statement in statements:
        scopes, table = list(current.scopes), parser.var_table
        current.line = place_of(source, statement).line
        try:
            parser.visit(statement)
        except Exception as error:
            current.scopes[:], parser.var_table = scopes, table
            _keep(error, source.source_name, statement)
    current.source, current.line, current.caller = before


def _keep(error: Exception, file: str, statement) -> None:
    current = state()
    if not current.lost & _names(statement, doc.Load):
        told = error if isinstance(error, KernelError) else kernel_error(error, file, 0)
        told.caller = current.caller
        current.errors.append(told)
    current.lost |= _names(statement, doc.Store)


def _names(statement, context: type) -> set[str]:
    """The names that a statement reads (doc.Load) or defines (doc.Store), its blocks included."""
    found, waiting = set(), [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, doc.Name) and isinstance(node.ctx, context):
            found.add(node.id)
        elif isinstance(node, doc.FunctionDef) and context is doc.Store:
            found.add(node.name)
            continue
        if isinstance(node, doc.AST):
            waiting += [getattr(node, field, None) for field in node.__class__._FIELDS]
        elif isinstance(node, list | tuple):
            waiting += node
    return found


def raise_all(errors: list[KernelError]) -> None:
    """Raises one KernelError with all errors in the order of the lines; equal reasons are given once."""
    alike: dict[str, list[KernelError]] = {}
    for error in sorted(errors, key=lambda e: e.line):
        alike.setdefault(error.reason, []).append(error)
    told = []
    for reason, (first, *again) in alike.items():
        lines = sorted({error.line for error in again} - {first.line})
        also = f" (also line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})" if lines else ""
        callers = sorted({error.caller for error in (first, *again) if error.caller})
        if callers:
            also += f" (called at line{'s' * (len(callers) > 1)} {', '.join(map(str, callers))})"
        told.append(KernelError(reason + also, first.file, first.line, first.text, first.others))
    first, *others = told
    raise KernelError(first.reason, first.file, first.line, first.text, [*first.others, *others]) from None


Parser.visit_body = visit_body
