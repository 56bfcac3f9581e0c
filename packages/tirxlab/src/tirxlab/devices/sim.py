"""Run an artifact on ptxsim, on numpy arrays that are written in place, with all checks. Needs no GPU."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes  # noqa: F401  (teaches numpy "bfloat16" and the 8-bit floats)
import numpy as np

import ptxsim
from tirxlab.artifact import Artifact, ScalarParam
from tirxlab.devices import DeviceError, Run, by_name
from tirxlab.devices.hints import HINTS
from tirxlab.devices.own_words import in_own_words

NAME = "sim"


def run(
    artifact: Artifact,
    arrays,
    *,
    order: str | int = "program",
    checks: bool = True,
    trace: bool | ptxsim.Costs | Callable = False,
    clusters: int | None = None,
    first: int = 0,
    max_instructions: int | None = None,
) -> Run:
    """Launch once. `order` is "program", "adverse" or a seed (ptxsim); `arrays` as `by_name` takes them.

    `trace` adds the ptxsim.Timeline of cluster `first`, or what an observer of the given class makes of it;
    `clusters` runs only that many, from `first` on.
    `max_instructions`: after so many a cluster is given up as incomplete.

    Raises DeviceError for arrays that do not fit. A kernel with an instruction that ptxsim does not model
    is not run at all: no outputs, verdict "incomplete".
    """
    buffers = _numpy_only(by_name(artifact, arrays))
    args = [_argument(param, buffers) for param in artifact.params]
    start = time.perf_counter()
    try:
        module = _load(artifact.ptx)
    except ptxsim.PtxError as error:
        finding = ptxsim.Finding("unsupported", "incomplete", f"ptxsim cannot run this kernel: {error}")
        return Run({}, 0.0, "incomplete", [finding], ["everything: the kernel was not run"], ran=False)
    module.reset()  # so that each run starts as in a new process
    result = module.launch(
        artifact.entry,
        grid=artifact.grid,
        block=artifact.block,
        cluster=artifact.cluster,
        shared_bytes=artifact.shared_bytes,
        args=args,
        checks=checks,
        order=order,
        names=[(n.name, n.dtype, n.offset, n.size) for n in artifact.names],
        trace=trace,
        clusters=clusters,
        first=first,
        max_instructions=max_instructions,
        arg_names=[p.name if isinstance(p, ScalarParam) else p.buffer for p in artifact.params],
        source=artifact.source.get("file", ""),
        hints=HINTS,
    )
    return Run(
        outputs={b.name: buffers[b.name] for b in artifact.outputs},
        seconds=time.perf_counter() - start,
        verdict=result.verdict,
        findings=[_in_own_words(artifact, finding) for finding in result.findings],
        not_checked=_not_checked(checks, result.stats),
        stats=result.stats,
        stdout="\n".join(getattr(result, "printed", [])),
        trace=result.trace,
    )


def _in_own_words(artifact: Artifact, finding: ptxsim.Finding) -> ptxsim.Finding:
    """A finding with its hint in terms of this kernel's names."""
    output = artifact.outputs[-1].name if artifact.outputs else "D"
    return replace(finding, hint=in_own_words(finding.hint, artifact.source.get("text", ""), output))


def prepare(artifact: Artifact, buffers: dict):
    """The launch with its memory laid out, before anything runs (ptxsim's Launch). `buffers`: name ->
    array.
    """
    args = [_argument(param, buffers) for param in artifact.params]
    shape = artifact.grid, artifact.block, artifact.cluster, artifact.shared_bytes
    return _load(artifact.ptx).prepare(artifact.entry, *shape, args)


def _not_checked(checks: bool, stats: dict) -> list[str]:
    if not checks:
        return ["everything: checks were switched off"]
    ran, grid = stats.get("ctas", 0), stats.get("grid_ctas", 0)
    left = [f"{grid - ran} of {grid} CTAs: they were not run"] if ran < grid else []
    if more := stats.get("orders", {}).get("left_out"):
        left.append(f"{more} further ways in which operations of two warps may follow each other")
    return left


def measure(artifact: Artifact, arrays, *, warmup: int = 10, repeat: int = 30) -> None:
    """None: the simulator has no clock that would say anything about a GPU."""
    return None


def _numpy_only(buffers: dict) -> dict:
    for name, array in buffers.items():
        if not isinstance(array, np.ndarray):
            raise DeviceError(f"{name} must be a numpy array on sim, not {type(array).__name__}")
    return buffers


@functools.lru_cache(maxsize=16)
def _load(ptx: str):
    return ptxsim.load(ptx)


def _number(name: str) -> np.dtype:
    """The numpy dtype of a name; DeviceError if it is not a type of numbers."""
    try:
        made = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        made = None
    if made is None or made.name != name or made.kind not in "biufV" or not made.itemsize:
        raise DeviceError(f"{name!r:.40} is not a type of numbers")
    return made


def _argument(param, buffers: dict):
    """A kernel parameter in the form that ptxsim takes."""
    if param.kind == "scalar":
        try:
            return _number(param.dtype).type(param.value)
        except OverflowError:
            raise DeviceError(f"the scalar {param.name} is not {param.dtype}: {param.value!r:.40}") from None
    if param.kind == "buffer":
        if param.byte_offset:
            raise DeviceError(
                f"a pointer into the middle of {param.buffer} ({param.byte_offset} B) is not modelled"
            )
        return buffers[param.buffer]
    if param.interleave:
        raise DeviceError(f"the interleaved tensor map of {param.buffer} is not modelled")
    try:
        return ptxsim.TensorMap(
            buffers[param.buffer],
            box=param.box,
            swizzle=param.swizzle,
            dims=param.dims,
            strides=param.strides,
            element_strides=param.element_strides,
            fill=param.fill,
            byte_offset=param.byte_offset,
            dtype=_number(param.dtype),
            name=param.buffer,
        )
    except ValueError as error:
        raise DeviceError(f"the tensor map of {param.buffer} is not valid: {error}") from None
