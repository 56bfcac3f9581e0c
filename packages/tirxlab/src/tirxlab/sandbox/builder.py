"""Steps of one kernels file to artifacts: a step that kills the child costs no other step."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import math
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tirxlab.artifact import Artifact, ArtifactError
from tirxlab.rubric import load_rubric
from tirxlab.sandbox.limits import Limits, printable
from tirxlab.sandbox.session import NotDone, OverLimit, Session, WorkerError
from tirxlab.steps import StepError, UntouchedStep, read_text
from tirxlab.toolchain import cache, nvrtc

Size = tuple[int, int, int]
REFUSALS = ("file", "untouched", "misfit", "build", "raised", "limit")
LEAST_SECONDS = 10  # that a step gets after others that took too much
DRAFT = 4 << 20  # bytes of a draft, at most: it is kept, and opened where it counts to nobody's limits
LARGEST_CUDA = 4 << 20  # characters of its text: ninety times what a kernel has; noise apart, it packs well


@dataclass
class Built:
    """What came of one step at one size."""

    step: int
    size: Size
    artifact: Artifact | None = None
    # Why there is none: "file", "untouched", "misfit", "build", "raised", "limit", "died"; "lab": our fault
    kind: str = ""
    message: str = ""  # the same for a person, safe to print
    printed: str = ""  # what the code printed meanwhile, safe to print


class NoKernel(ValueError):
    """The code of a step makes no kernel; the message says why."""


def artifact_of(path: Path, step: int, size: Size) -> Artifact:
    """One step of a file, built in a confined child.

    StepError or UntouchedStep for the file, ValueError for a size that does not fit, else NoKernel.
    """
    with Builder(read_text(path), path.name) as builder:
        built = builder.build(step, size)
    if built.artifact is None:
        kinds = {"file": StepError, "untouched": UntouchedStep, "misfit": ValueError}
        raise kinds.get(built.kind, NoKernel)(built.message)
    return built.artifact


class Builder:
    """Builds steps of a kernels file given as text. Use as a context manager: it has two child processes.

    Each step that goes over a limit halves the time of those that follow, down to LEAST_SECONDS. `patience`:
    seconds for all steps; who stays just below each limit gets that little, too, once they are more.
    """

    def __init__(
        self,
        text: str,
        name: str = "gemm_kernels.py",
        limits: Limits | None = None,
        level: str | None = None,
        arch: str = "sm_100a",
        patience: float = math.inf,
    ):
        self.text, self.name, self.arch = text, name, arch
        limits = limits or Limits()
        self.student = Session("lower", replace(limits, reply=DRAFT), level)
        self.compiler = Session("compile", limits, level)
        self.told: subprocess.Popen | None = None  # the process that has the file's text
        self.patience = patience
        self.tried: set[str] | None = None  # kernels that are of no interest again: then PTX alone is made

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def start(self) -> None:
        """Start both children before there is work for them: they import meanwhile what they will need."""
        for session in (self.student, self.compiler):
            if not session.running:
                session.start()

    def stop(self) -> None:
        """Make a `build` of another thread end soon."""
        self.student.stop()
        self.compiler.stop()

    def close(self) -> None:
        self.student.close()
        self.compiler.close()

    def build(self, step: int, size: Size, sms: int | None = None, whole: bool = True) -> Built:
        """Never raises for what the code does. `sms`: its SM_COUNT; None: the rubric's for the size. Unless
        `whole`, PTX alone will do: the simulator needs no more.
        """
        built = Built(step, size)
        try:
            draft = self._draft(built, sms)
            built.artifact = draft and self._compiled(built, draft, whole)
        except WorkerError as error:
            kinds = {NotDone: "lab", OverLimit: "limit"}
            built.kind = next((kind for what, kind in kinds.items() if isinstance(error, what)), "died")
            built.message = f"the code {error}"
        except ArtifactError as error:
            built.kind, built.message = (
                "died",
                f"the code gave something that is no kernel: {printable(str(error), 1)}",
            )
        if built.kind == "limit" or self.spent > self.patience:
            self._lose_patience()
        built.printed = printable(self.student.printed.decode(errors="replace"))
        return built

    @property
    def spent(self) -> float:
        """Seconds that all steps have taken, as clock.py counts them."""
        return self.student.spent + self.compiler.spent

    def _lose_patience(self) -> None:
        for session in (self.student, self.compiler):
            half = session.limits.seconds / 2 if self.spent <= self.patience else 0
            least = min(LEAST_SECONDS, session.limits.seconds)
            session.limits = replace(session.limits, seconds=max(least, half))

    def _draft(self, built: Built, sms: int | None) -> Artifact | None:
        """What the student's code makes, as valid data; the text that goes with it is ours."""
        if self.told is None or self.told is not self.student.process:
            answer, _ = self.student.ask({"name": self.name}, self.text.encode())
            if not answer["ok"]:  # none of their code has run yet
                self._refuse(built, answer, ours=True)
                return None
            self.told = self.student.process
        sms = sms or load_rubric().few_sms.get((built.step, built.size))
        asked = {"step": built.step, "size": built.size, "arch": self.arch, "sm_count": sms}
        answer, data = self.student.ask(asked)
        if answer.get("spent"):
            self.student.close()
        if not answer["ok"]:
            self._refuse(built, answer)
            return None
        draft = Artifact.from_bytes(data)
        if not draft.is_draft or draft.arch != self.arch:
            raise ArtifactError(f"a draft for {self.arch} is asked for")
        if len(draft.cuda) > LARGEST_CUDA:
            raise ArtifactError(f"its CUDA text is larger than {LARGEST_CUDA >> 20} MiB")
        return draft.with_source(self.name, self.text)

    def _refuse(self, built: Built, answer: dict, ours: bool = False) -> None:
        """`ours`: the answer of a child that has run no student code."""
        kind, message = answer.get("kind"), answer.get("message")
        if kind in ((*REFUSALS, "lab") if ours else REFUSALS) and isinstance(message, str):
            built.kind, built.message = str(kind), printable(message)
        else:
            built.kind, built.message = "died", "the code gave an answer that is none"

    def _compiled(self, built: Built, draft: Artifact, whole: bool) -> Artifact | None:
        """The draft compiled by NVRTC, from the cache if the same CUDA text was compiled before."""
        if self.tried is not None:
            return self._new(built, draft)
        name = _key(draft)
        found = cache.get(name) or (None if whole else cache.get(f"{name}-ptx"))
        if found is None:
            found = self._asked(built, draft, whole)
            if found is None:
                return None
            cache.put(name if whole else f"{name}-ptx", found)
        return found.with_source(self.name, self.text)

    def _asked(self, built: Built, draft: Artifact, whole: bool) -> Artifact | None:
        answer, data = self.compiler.ask({"whole": whole}, draft.with_source(self.name, "").to_bytes())
        if answer["ok"]:
            return Artifact.from_bytes(data)
        self._refuse(built, self._at_line(answer), ours=True)
        return None

    def _new(self, built: Built, draft: Artifact) -> Artifact | None:
        """Its PTX, if no such kernel was tried before."""
        assert self.tried is not None
        same = kernel_of(draft)
        if same in self.tried:
            built.kind, built.message = "build", "the same kernel was tried before"
            return None
        self.tried.add(same)
        found = self._asked(built, draft, False)
        return found and found.with_source(self.name, self.text)

    def _at_line(self, answer: dict) -> dict:
        """The compiler's message with the student's line, as tirxlab.toolchain.build gives it."""
        line, lines = answer.get("line"), self.text.splitlines()
        if type(line) is not int or not 0 < line <= len(lines):
            return answer
        return answer | {"message": f"{self.name}:{line}: {answer['message']}\n    {lines[line - 1].strip()}"}


def kernel_of(artifact: Artifact) -> str:
    """What tells kernels apart: their CUDA text without the student's lines, and their launch."""
    text = re.sub(rf"\b{nvrtc.SOURCE_MARK}\(\d+\);", "", artifact.cuda)
    shape = artifact.grid, artifact.block, artifact.cluster, artifact.shared_bytes
    return hashlib.sha256(repr((text, shape, artifact.params)).encode()).hexdigest()


@functools.cache
def _compiler() -> str:
    return importlib.metadata.version("nvidia-cuda-nvrtc")


def _key(draft: Artifact) -> str:
    """Everything that decides what the compiler makes of a draft, and the draft itself."""
    plain = hashlib.sha256(draft.with_source("", "").to_bytes()).hexdigest()
    return (
        "worker-" + hashlib.sha256(json.dumps([plain, nvrtc.SETTINGS, _compiler()]).encode()).hexdigest()[:32]
    )
