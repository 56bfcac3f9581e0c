"""Inside the confined child: answers requests on standard input, one JSON line each, until it is closed.

    {"ready": true}            answered as soon as everything is imported
    python child.py lower      first {"name", "bytes"} and the file; then arguments of `lower`: a draft
    python child.py compile    {"bytes"} and a draft: the finished artifact; {"whole": false}: only PTX
    python child.py call       first {"module", "bytes"} and its text; then {"call", "bytes"}: the result
An answer is one JSON line {"ok", "bytes", ..} and that many bytes. Printed text goes to standard error.
Each draft is made in a fork of this process that is thrown away (apart.py), so that one step's code does not
see what another's has changed. It might still reach this process, so the parent trusts only valid data.
What the answers need is imported before the first request, which may come later.
"""

import contextlib
import gc
import io
import json
import os
import sys
import traceback
from pathlib import Path

# bytes: a hundred times a kernel's; reading more would take minutes and gigabytes
LARGEST_PTX = 8 << 20
LONGEST = 5000  # most characters of a message: even escaped, it fits into the line that the parent reads
_LAB = Path(__file__).resolve().parents[5]
sys.path[:0] = [str(_LAB), *(str(_LAB / "packages" / name / "src") for name in ("tirxlab", "ptxsim"))]


def main(mode: str) -> None:
    stdin, replies = sys.stdin, os.fdopen(os.dup(1), "wb")
    requests, sys.stdin = stdin.buffer, io.StringIO()  # so that input() reads no request, but ends at once
    os.dup2(2, 1)
    gc.disable()  # objects made by imports live to the end
    serve = served(mode, replies.fileno())
    gc.freeze()
    gc.enable()
    while line := requests.readline():
        request = json.loads(line)
        if "ready" in request:
            answer, data = {"ok": True}, b""
        else:
            answer, data = serve.answer(request, requests.read(request.get("bytes", 0)))
        sys.stdout.flush()
        replies.write(json.dumps({**answer, "bytes": len(data)}).encode() + b"\n" + data)
        replies.flush()


def served(mode: str, replies: int):
    """The object that answers requests; in a damaged environment, one that only reports the damage."""
    try:
        return Lowering(replies) if mode == "lower" else {"compile": Compiling, "call": Calling}[mode]()
    except Exception as error:  # a half-missing package may raise anything
        return Damaged(error)


class Damaged:
    def __init__(self, error: Exception):
        from tirxlab.damaged import told

        self.said = told(error)

    def answer(self, request: dict, data: bytes) -> tuple[dict, bytes]:
        return refused("lab", self.said)


def refused(kind: str, message: str) -> tuple[dict, bytes]:
    return {"ok": False, "kind": kind, "message": message[:LONGEST]}, b""


class Calling:
    """Calls functions of one module of the lab, from others' bytes to bytes; runs no student code."""

    def __init__(self):
        self.module: dict = {}

    def answer(self, request: dict, data: bytes) -> tuple[dict, bytes]:
        if "module" in request:
            self.module = {"__name__": request["module"]}
            exec(compile(data, request["module"], "exec"), self.module)
            return {"ok": True}, b""
        try:
            return {"ok": True}, self.module[request["call"]](data)
        except ValueError as error:
            return refused("raised", str(error))
        except (MemoryError, RecursionError) as error:
            return refused("raised", f"cannot be read: {type(error).__name__}")


class Compiling:
    """Compiles drafts to artifacts; runs no student code."""

    def __init__(self):
        from tirxlab.toolchain import nvrtc

        with contextlib.suppress(ImportError):  # reported when it is needed
            nvrtc.version()

    def answer(self, request: dict, data: bytes) -> tuple[dict, bytes]:
        from tirxlab.artifact import Artifact
        from tirxlab.toolchain import nvrtc

        draft = Artifact.from_bytes(data)
        try:
            made = nvrtc.finish(draft, request.get("whole", True))
        except nvrtc.CompileError as error:
            reason, line = nvrtc.first_error(error, draft.cuda)
            return {**refused("build", reason)[0], "line": line}, b""
        if len(made.ptx) > LARGEST_PTX:
            return refused("build", f"its PTX is larger than {LARGEST_PTX >> 20} MiB")
        return {"ok": True}, made.to_bytes()


class Lowering:
    """Lowers steps of one kernels file to drafts, each in a process that cannot write to `replies`.

    An answer with "spent" asks for a new child, because the code has left files or a process behind.
    """

    def __init__(self, replies: int):
        from tirxlab.sandbox import apart
        from tirxlab.toolchain.lean_tvm import import_tvm

        import_tvm()
        from tirxlab.builders import compile_ahead
        from tirxlab.sandbox.first_kernel import build_first

        build_first()
        apart.adopt_orphans()
        self.apart, self.ahead, self.replies = apart, compile_ahead, replies

    def answer(self, request: dict, data: bytes) -> tuple[dict, bytes]:
        if "name" in request:
            self.path = Path(request["name"]).resolve()
            self.path.write_bytes(data)
            self.ahead(self.path)
            self.there = self.files()
            return {"ok": True}, b""
        answer, data = self.apart.apart(lambda: self.draft(request), 0, self.replies)
        spent = self.apart.left_over() or self.files() != self.there
        return {**answer, "spent": spent}, data

    def files(self) -> set[tuple[str, int, int]]:
        """The contents of the kernels file's folder, with their ctime, which nobody can set back."""
        found = os.scandir(self.path.parent)
        return {
            (one.name, (seen := one.stat(follow_symlinks=False)).st_size, seen.st_ctime_ns) for one in found
        }

    def draft(self, request: dict) -> tuple[dict, bytes]:
        try:
            return self.lower(**request)
        except SystemExit as error:
            trace = traceback.extract_tb(error.__traceback__)
            lines = [one.lineno for one in trace if one.filename == str(self.path.resolve())]
            where = f"{self.path.name}:{lines[-1]}: " if lines else ""
            return refused("raised", f"{where}the code calls sys.exit()")
        except MemoryError:
            return refused("limit", "the code asks for more memory than it may use")

    def lower(self, step: int, size: list[int], arch: str, sm_count: int | None = None) -> tuple[dict, bytes]:
        from tirxlab.builders import builder
        from tirxlab.steps import StepError, UntouchedStep
        from tirxlab.toolchain.build import BuildError, draft

        try:
            make = builder(self.path, step, sm_count)
        except StepError as error:
            return refused("untouched" if isinstance(error, UntouchedStep) else "file", str(error))
        try:
            kernel = make(*size)
            return {"ok": True}, draft(kernel, arch).to_bytes()
        except BuildError as error:
            return refused("build", str(error))
        except MemoryError:
            raise
        except Exception as error:
            misfit = type(error) is ValueError  # what a builder raises for a shape that does not fit
            return refused("misfit" if misfit else "raised", self.describe(error))

    def describe(self, error: Exception) -> str:
        """The message of the builder, the dialect or builder_slips.py; a student's exception may fail."""
        try:
            return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        except Exception:
            return "an error that cannot be shown"


if __name__ == "__main__":
    main(sys.argv[1])
