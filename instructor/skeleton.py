"""Makes the student's gemm_kernels.py from the solutions, by markers that the solutions carry as comments.

    # TODO[begin] What to do here.          the hint; the skeleton shows `# TODO: What to do here.`
    # | How to go about it.                 more lines of the hint
    # > value = 0                           code that the skeleton has in place of the solution's
    ...                                     the solution; the skeleton leaves it out
    # TODO[end]

Blocks do not nest, begin and end have the same indentation, and all other lines are kept.
"""

import re
from dataclasses import dataclass, field

from tirxlab.steps import STEPS, sections

_BEGIN = re.compile(r"^( *)# TODO\[begin\] (\S.*)$")
_END = re.compile(r"^( *)# TODO\[end\]$")
_HINT = re.compile(r"^ *# \| ?(.*)$")
_CODE = re.compile(r"^ *# > (.*)$")
_ANY = re.compile(r"TODO\[")


class MarkerError(ValueError):
    """Markers are not balanced or not well-formed; the message names the line of the solutions."""


@dataclass
class Block:
    """One marked part of the solutions."""

    line: int  # of the begin marker, 1-based
    indent: str
    hint: list[str]
    code: list[str] = field(default_factory=list)  # what the skeleton has in place of the solution
    solution: list[str] = field(default_factory=list)

    def skeleton(self) -> list[str]:
        first, *rest = self.hint
        shown = [f"# TODO: {first}", *(f"#       {line}".rstrip() for line in rest), *self.code]
        return [self.indent + line for line in shown]


def make_skeleton(solutions: str) -> str:
    """The student's file; MarkerError unless markers are balanced and every step has something to do."""
    kept: list[str] = []
    for part in parse(solutions):
        kept += part.skeleton() if isinstance(part, Block) else [part]
    text = "\n".join(kept) + "\n"
    compile(text, "gemm_kernels.py", "exec")
    for step, section in sections(text).items():
        if step in STEPS and "# TODO: " not in section:
            raise MarkerError(
                f"hgemm_v{step} has no TODO[begin] .. TODO[end]: the skeleton would give it away"
            )
    return text


def parse(solutions: str) -> list[str | Block]:
    """The lines of the solutions, each marked part taken together as a Block."""
    parts: list[str | Block] = []
    block = None
    for number, line in enumerate(solutions.splitlines(), 1):
        begin, end = _BEGIN.match(line), _END.match(line)
        if begin:
            if block:
                raise MarkerError(f"line {number}: TODO[begin] inside the one that line {block.line} opened")
            block = Block(number, begin[1], [begin[2]])
        elif end:
            parts.append(closed(block, end[1], number))
            block = None
        elif _ANY.search(line):
            raise MarkerError(
                f"line {number}: neither `# TODO[begin] hint` nor `# TODO[end]`: {line.strip()}"
            )
        elif block:
            add(block, line)
        else:
            parts.append(line)
    if block:
        raise MarkerError(f"line {block.line}: TODO[begin] has no TODO[end]")
    return parts


def closed(block: Block | None, indent: str, number: int) -> Block:
    """The block that an end marker closes, checked."""
    if block is None:
        raise MarkerError(f"line {number}: TODO[end] without a TODO[begin]")
    if indent != block.indent:
        raise MarkerError(f"line {number}: TODO[end] is not indented as its TODO[begin] in line {block.line}")
    if not any(line.strip() for line in block.solution):
        raise MarkerError(f"line {block.line}: nothing between TODO[begin] and TODO[end]")
    return block


def add(block: Block, line: str) -> None:
    """Sorts one line into a block: hint and replacement code come first, the rest is the solution."""
    hint, code = _HINT.match(line), _CODE.match(line)
    if block.solution or not (hint or code):
        block.solution.append(line)
    elif hint:
        block.hint.append(hint[1])
    elif code:
        block.code.append(code[1])
