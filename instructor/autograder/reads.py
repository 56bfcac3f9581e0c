"""Whether a kernel can read one of its buffers at all, decided from its PTX; in doubt it can.

If only TMA reads global memory, and each load's tensor map is a parameter for another buffer, no thread
learns what this buffer holds, and what the kernel does cannot depend on it. PTX ISA 9.7.9, Data Movement and
Conversion Instructions; 9.7.13 and 9.7.15 for atom, red and wmma.
"""

from __future__ import annotations

import re

from instructor.autograder.ptx_rules import LEFT_OUT
from tirxlab.artifact import Artifact, TensorMapParam

# Instructions that may bring bytes from global memory to a thread or to shared memory, by their first word.
_MAY_READ = re.compile(
    r"(?<![\w.$%])(?<!::)(?:ldu?|atom|red|cp|tex|tld4|suld|suq|sured|multimem|wmma|call|brx|tensormap|"
    r"clusterlaunchcontrol)(?![\w$])[\w.:]*"
)
_ELSEWHERE = {"shared", "local"}  # state spaces
_NAMED = {"param", "const"}  # the same, unless a register holds the address: it may point to any space
_BY_REGISTER = re.compile(r"[^;\[]*\[\s*%")
_STORE = re.compile(r"cp\.async\.bulk\.(?:commit_group|wait_group\b|tensor\.\dd\.global\.shared::cta\b)")
_LOAD = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.shared::c\w+\.global\S*\s+\[[^\]]*\],\s*\[(%\w+),")
_COPY = r"(?:mov\.[bu]64|cvta\.param\.u64)\s+"


def cannot_read(artifact: Artifact, buffer: str) -> bool:
    """Whether no instruction of the kernel can read this buffer."""
    text = LEFT_OUT.sub(" ", artifact.ptx)
    loads = [
        _LOAD.match(text, found.start())
        for found in _MAY_READ.finditer(text)
        if not _not_global(found[0], bool(_BY_REGISTER.match(text, found.end())))
    ]
    others = {
        f"{artifact.entry}_param_{number}"
        for number, param in enumerate(artifact.params)
        if isinstance(param, TensorMapParam) and param.buffer != buffer
    }
    maps = {load[1] if load else "" for load in loads}
    return all(_source(text, register) in others for register in maps)


def _not_global(name: str, by_register: bool) -> bool:
    """Whether an instruction of this name reads no global memory; `by_register`: at a register's address."""
    words = set(re.split(r"[.:]+", name))
    spaces = _ELSEWHERE if by_register else _ELSEWHERE | _NAMED
    return bool(
        _STORE.match(name) or (words & {"ld", "atom", "red"} and words & spaces and "global" not in words)
    )


def _source(text: str, register: str) -> str:
    """The parameter that a register is a copy of; "" if it may hold anything else."""
    for _ in range(20):
        found = _only_value(text, register) if register.startswith("%") else ""
        if not found.startswith("%"):
            declared = re.findall(rf"\.param\b[^;,()]*[\s]{re.escape(found)}(?![\w$])", text)
            return found if len(declared) == 1 else ""
        register = found
    return ""


def _only_value(text: str, register: str) -> str:
    """What is copied into a register, if it occurs only in that one copy and in reads; else ""."""
    values = []
    for found in re.finditer(rf"{re.escape(register)}(?![\w$])", text):
        before, after = (
            text[max(0, found.start() - 80) : found.start()],
            text[found.end() : found.end() + 120],
        )
        written = re.match(r"\s*,\s*([%\w$]+)\s*;", after) if re.search(_COPY + "$", before) else None
        read = before.endswith("[") or (
            re.search(_COPY + r"%\w+\s*,\s*$", before) and re.match(r"\s*;", after)
        )
        if written:
            values.append(written[1])
        elif not read:
            return ""
    return values[0] if len(values) == 1 else ""
