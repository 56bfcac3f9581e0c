"""Builds steps of one kernels file to artifacts; a step that kills the child costs no other step."""

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
LEAST_SECONDS = 10  # that a step gets, however much time earlier steps took
DRAFT = 4 << 20  # most bytes of a packed draft: it is kept, and unpacked where no limits apply
LARGEST_CUDA = 4 << 20  # most characters of its CUDA text, ninety times a kernel's; text packs well


@dataclass
class Built:
    """The result of building one step at one size."""

    step: int
    size: Size
    artifact: Artifact | None = None
    # Why there is none: "file", "untouched", "misfit", "build", "raised", "limit", "died"; "lab": our fault
    kind: str = ""
    message: str = ""  # the reason for a person, safe to print
    printed: str = ""  # what the code printed, safe to print


class NoKernel(ValueError):
    """The code of a step does not make a kernel; the message says why."""


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
    """Builds steps of a kernels file given as text. A context manager, because it has two child processes.

    Each step that exceeds a limit halves the time for the following ones, down to LEAST_SECONDS. `patience`:
    seconds for all steps together; once they are used up, further steps get only LEAST_SECONDS.
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
        self.tried: set[str] | None = None  # kernels not to be built again; if given, only PTX is made

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def start(self) -> None:
        """Start both children before there is work for them, so that they import what they will need."""
        for session in (self.student, self.compiler):
            if not session.running:
                session.start()

    def stop(self) -> None:
        """Make a `build` in another thread end soon."""
        self.student.stop()
        self.compiler.stop()

    def close(self) -> None:
        self.student.close()
        self.compiler.close()

    def build(self, step: int, size: Size, sms: int | None = None, whole: bool = True) -> Built:
        """Build a step; never raises because of what its code does. `sms`: the SM_COUNT; None: the rubric's.
        Unless `whole`, only PTX is made, which is all that the simulator needs.
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
                f"the code gave something that is not a kernel: {printable(str(error), 1)}",
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
        """The draft that the student's code makes, validated, with our copy of the source text."""
        if self.told is None or self.told is not self.student.process:
            answer, _ = self.student.ask({"name": self.name}, self.text.encode())
            if not answer["ok"]:  # no student code has run yet
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
            raise ArtifactError(f"a draft for {self.arch} was asked for")
        if len(draft.cuda) > LARGEST_CUDA:
            raise ArtifactError(f"its CUDA text is larger than {LARGEST_CUDA >> 20} MiB")
        return draft.with_source(self.name, self.text)

    def _refuse(self, built: Built, answer: dict, ours: bool = False) -> None:
        """Record why there is no artifact. `ours`: the answer is of a child that has run no student code."""
        kind, message = answer.get("kind"), answer.get("message")
        if kind in ((*REFUSALS, "lab") if ours else REFUSALS) and isinstance(message, str):
            built.kind, built.message = str(kind), printable(message)
        else:
            built.kind, built.message = "died", "the code gave an invalid answer"

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
        """The draft compiled to PTX; None if the same kernel was tried before."""
        assert self.tried is not None
        same = kernel_of(draft)
        if same in self.tried:
            built.kind, built.message = "build", "the same kernel was tried before"
            return None
        self.tried.add(same)
        found = self._asked(built, draft, False)
        return found and found.with_source(self.name, self.text)

    def _at_line(self, answer: dict) -> dict:
        """The compiler's message with the student's line, in the form of tirxlab.toolchain.build."""
        line, lines = answer.get("line"), self.text.splitlines()
        if type(line) is not int or not 0 < line <= len(lines):
            return answer
        return answer | {"message": f"{self.name}:{line}: {answer['message']}\n    {lines[line - 1].strip()}"}


def kernel_of(artifact: Artifact) -> str:
    """A hash that identifies a kernel: its CUDA text without the student's line numbers, and its launch."""
    text = re.sub(rf"\b{nvrtc.SOURCE_MARK}\(\d+\);", "", artifact.cuda)
    shape = artifact.grid, artifact.block, artifact.cluster, artifact.shared_bytes
    return hashlib.sha256(repr((text, shape, artifact.params)).encode()).hexdigest()


@functools.cache
def _compiler() -> str:
    return importlib.metadata.version("nvidia-cuda-nvrtc")


def _key(draft: Artifact) -> str:
    """The cache key: a hash of the draft and of everything that determines how it is compiled."""
    plain = hashlib.sha256(draft.with_source("", "").to_bytes()).hexdigest()
    return (
        "worker-" + hashlib.sha256(json.dumps([plain, nvrtc.SETTINGS, _compiler()]).encode()).hexdigest()[:32]
    )
