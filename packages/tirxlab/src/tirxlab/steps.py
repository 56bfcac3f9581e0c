"""The ten steps of a kernels file: find their text, run it as a module, recognise untouched skeletons.

A kernels file defines `hgemm_v1(M, N, K)` .. `hgemm_v10(M, N, K)`. The section of step N is the text from its
`def` up to the next step's `def` (or the end), so that a file with syntax errors can be split, too. No TVM.
"""

import ast
import functools
import gzip
import linecache
import re
import sys
import traceback
import warnings
from bisect import bisect
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, ModuleType

STEPS = tuple(range(1, 11))
SKELETON = Path(__file__).parent / "data" / "gemm_kernels.skeleton.gz"
_DEF = re.compile(r"^def[ \t]+hgemm_v(\d{1,4})[ \t]*\(", re.MULTILINE)
_OPENS = re.compile(r"#[^\n]*|\"\"\"|'''|[\"']")  # a comment or a string
_ENDS = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ('"""', "'''")}
_ENDS |= {quote: re.compile(rf"\\.|{quote}|\n", re.DOTALL) for quote in "\"'"}


class StepError(ValueError):
    """A kernels file that cannot be used; the message is one line that says what to do."""


class UntouchedStep(StepError):
    """The step asked for still reads as its skeleton."""


def parse_size(text: str) -> tuple[int, int, int]:
    """`1024` or `MxNxK` -> (M, N, K); StepError for anything else."""
    match = re.fullmatch(r"(\d+)(?:[xX](\d+)[xX](\d+))?", text)
    numbers = [int(part or match[1]) for part in match.groups()] if match else [0]
    if min(numbers) < 1:
        raise StepError(f"{text!r} is not a size: write 1024 or MxNxK, for example 384x640x192")
    m, n, k = numbers
    return m, n, k


def size_text(size: tuple[int, int, int]) -> str:
    """(M, N, K) as one would write it: `1024` for a cube, else `MxNxK`."""
    return str(size[0]) if len(set(size)) == 1 else "x".join(map(str, size))


def read_text(path: Path) -> str:
    """The file's text, without a byte order mark; StepError if it cannot be read for any reason."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise StepError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise StepError(f"{path}:{line}: this is not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise StepError(f"{path}: cannot be read: {error.strerror}") from None


def read_skeleton() -> str:
    """gemm_kernels.py as it is handed out; "" where that file is missing."""
    return gzip.decompress(SKELETON.read_bytes()).decode() if SKELETON.exists() else ""


def write_skeleton(text: str) -> None:
    SKELETON.write_bytes(gzip.compress(text.encode(), mtime=0))


@functools.lru_cache(maxsize=4)
def refuse_syntax_errors(text: str, name: str) -> None:
    """StepError, with the line and its text, if the text is not Python. Nothing of it is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, name, "exec")
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        text = (error.text or "").strip()
        said = f": {text}" if text else ""
        raise StepError(f"{name}{line}: {error.msg}{said}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise StepError(f"{name}: {str(error) or 'its expressions are nested too deeply'}") from None


def sections(text: str, broken: bool = False) -> dict[int, str]:
    """Step -> its text; the text before the first step is under 0. All values joined give the file.

    If a step is defined twice, a version inside a string does not count. In a `broken` text, which is not
    valid Python, strings cannot be recognised, so every version counts.
    """
    starts = [(int(match[1]), match.start()) for match in _DEF.finditer(text)]
    if not broken and len(dict(starts)) < len(starts):
        strings = _strings(text)
        starts = [(step, at) for step, at in starts if strings[bisect(strings, (at, at)) - 1][1] <= at]
    numbers = [step for step, _ in starts]
    for step in dict.fromkeys(numbers):
        if step not in STEPS:
            raise StepError(f"hgemm_v{step} is not one of the ten steps")
        if numbers.count(step) > 1:
            first, second, *_ = [start for number, start in starts if number == step]
            where = " and ".join(str(text.count("\n", 0, start) + 1) for start in (first, second))
            raise StepError(f"hgemm_v{step} is defined twice, in lines {where}: keep one of them")
    ends = [begin for _, begin in starts[1:]] + [len(text)]
    found = {0: text[: starts[0][1]] if starts else text}
    return found | {step: text[begin:end] for (step, begin), end in zip(starts, ends, strict=False)}


@functools.lru_cache(maxsize=4)
def _strings(text: str) -> list[tuple[int, int]]:
    """(0, 0), then (begin, end) of each string that spans lines. Just (0, 0) if a string does not end: such a
    text is not Python.
    """
    found, at = [(0, 0)], 0
    while opened := _OPENS.search(text, at):
        at = opened.end()
        if opened[0][0] == "#":
            continue
        ended = _ENDS[opened[0]].search(text, at)
        while ended and ended[0][0] == "\\":
            ended = _ENDS[opened[0]].search(text, ended.end())
        if not ended or ended[0] == "\n":
            return found[:1]
        at = ended.end()
        if "\n" in text[opened.start() : at]:
            found.append((opened.start(), at))
    return found


def may_have(text: str, step: int) -> bool:
    """Whether a step is or may be defined, also in other ways: `hgemm_v8 = partial(ringed, 4)`, in a loop."""
    return step in sections(text) or bool(re.search(rf"\bhgemm_v(?:{step}\b|[{{%])", text))


def is_untouched(text: str, step: int) -> bool:
    """Whether the step still reads as its skeleton (empty lines and spaces at line ends do not count)."""
    mine, original = sections(text).get(step), sections(read_skeleton()).get(step)
    return mine is not None and original is not None and _squeezed(mine) == _squeezed(original)


def todos(text: str, step: int) -> list[int]:
    """Lines of the file (from 1) on which the step still has a TODO."""
    parts = sections(text)
    first = 1
    for number, part in parts.items():
        if number == step:
            lines = enumerate(part.splitlines(), first)
            return [line for line, said in lines if re.search(r"#\s*TODO\b(?!\[)", said)]
        first += part.count("\n")
    return []


def _squeezed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def load_kernels(path: Path, sm_count: int | None = None, text: str | None = None) -> ModuleType:
    """Run a kernels file as a module, from its present text. StepError names the line of an error in it.

    sm_count: the SM_COUNT to use instead of the file's. text: the text to run instead of the file's, with the
    same line numbers.
    """
    path = Path(path).resolve()
    text = read_text(path) if text is None else text
    refuse_syntax_errors(text, path.name)
    linecache.checkcache(str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    try:
        exec(code_of(text, str(path), sm_count), module.__dict__)
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = f":{frames[-1].lineno}" if frames else ""
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise StepError(f"{path.name}{line}: {said}{_remedy(error)}") from error
    return module


@functools.lru_cache(maxsize=4)
def code_of(text: str, path: str, sm_count: int | None) -> CodeType:
    """The compiled code of a kernels file; made once for a process and its forks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # python_slips.py says it with the remedy
        return compile(with_sm_count(text, sm_count), path, "exec")


def with_sm_count(text: str, sm_count: int | None) -> ast.Module:
    """A kernels file's syntax tree with another number in its line `SM_COUNT = 148`.

    Few SMs give each CTA many tiles, so that a mistake in the fifth tile shows at small sizes.
    """
    tree = ast.parse(text)
    for node in tree.body if sm_count is not None else ():
        if (value := _number_of_sms(node)) is not None:
            value.value = sm_count
    return tree


def _number_of_sms(node: ast.stmt) -> ast.Constant | None:
    """The number in the line `SM_COUNT = 148`; None for any other statement."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Constant):
        return None
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return node.value if [getattr(target, "id", "") for target in targets] == ["SM_COUNT"] else None


def names_sm_count(text: str, step: int) -> bool:
    """Whether a step, or the helpers and constants outside the steps, write out the number of SMs (148) or of
    SM pairs (74), which another SM_COUNT would contradict.
    """
    others = {f"hgemm_v{other}" for other in STEPS if other != step}
    body = [node for node in ast.parse(text).body if getattr(node, "name", "") not in others]
    own = [node for node in body if _number_of_sms(node) is None]
    numbers = {node.value for one in own for node in ast.walk(one) if isinstance(node, ast.Constant)}
    return bool({148, 74} & {number for number in numbers if type(number) is int})


def _remedy(error: Exception) -> str:
    """The remedy for an error in the top level of a kernels file, if one is known."""
    if isinstance(error, ModuleNotFoundError) or "relative import" in str(error):
        return (
            ": all of your code goes into this file, which may import the standard library, numpy and tirxlab"
        )
    if type(error).__name__ in ("EOFError", "BdbQuit"):
        return ": there is no keyboard here"
    name = re.match(r"cannot import name '(\w+)' from 'tirxlab'", str(error))
    near = get_close_matches(name[1], sys.modules["tirxlab"].DIALECT_NAMES, 1) if name else []
    return f"; did you mean {near[0]}?" if near else ""
