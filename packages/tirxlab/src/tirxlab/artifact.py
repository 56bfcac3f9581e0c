"""A compiled kernel as plain data, which every device, inspector and grader reads.

An artifact is one zip of JSON, text and the cubin. Loading it needs no pickle, no TVM and no GPU.
Dimensions of tensor maps are innermost first and strides are in bytes, as in `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import threading
import zipfile
import zlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

FORMAT = 1
ROLES = ("in", "out", "inout")
ARCHS = re.compile(r"sm_\d+[af]?")
_META, _MEMBER = 2 << 20, 64 << 20  # most bytes of artifact.json, of each other member
_TEXT, _NAME, _MANY = 1 << 20, 200, 4096  # characters of the source text and of a name; entries of a list
_SHARED = 228 << 10  # bytes of shared memory of an SM: more than any launch can get
_GRID = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide, compute capabilities
_BUFFER = 1 << 40  # bytes


class ArtifactError(ValueError):
    """The file is not an artifact, or not one that this version can use; the message is one line."""


@dataclass(frozen=True)
class TensorMapParam:
    """A kernel parameter that is a tensor map (CUDA driver API, `cuTensorMapEncodeTiled`)."""

    buffer: str  # name of the buffer it describes
    byte_offset: int  # of the map's base inside the buffer
    dtype: str  # "float16"
    dims: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # bytes, of the dimensions 1.. (the innermost one is dense)
    box: tuple[int, ...]  # elements
    element_strides: tuple[int, ...]
    interleave: int = 0  # CU_TENSOR_MAP_INTERLEAVE_NONE, 16B, 32B
    swizzle: int = 0  # bytes: 0, 32, 64 or 128
    l2_promotion: int = 0  # CUtensorMapL2promotion
    fill: str = "zero"  # out-of-bounds elements: "zero" or "nan"
    kind: str = "tensor_map"


@dataclass(frozen=True)
class BufferParam:
    """A kernel parameter that is a pointer into a buffer."""

    buffer: str
    byte_offset: int = 0
    kind: str = "buffer"


@dataclass(frozen=True)
class ScalarParam:
    """A kernel parameter passed by value; fixed when the kernel was built."""

    name: str
    dtype: str
    value: int | float
    kind: str = "scalar"


@dataclass(frozen=True)
class BufferInfo:
    """A parameter of the student's function, in the function's order."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str  # "in", "out" or "inout"


@dataclass(frozen=True)
class SharedName:
    """A named range of dynamic shared memory. Names may repeat and ranges may overlap."""

    name: str
    dtype: str
    offset: int  # bytes from the start of dynamic shared memory
    size: int  # bytes
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Artifact:
    """One kernel, compiled for one architecture. `params` are in the order of the PTX entry.

    A draft is the result of lowering: CUDA text and launch, without PTX and cubin. No device runs it.
    """

    arch: str  # "sm_100a"
    entry: str  # name of the kernel in the PTX
    cuda: str
    ptx: str
    cubin: bytes
    grid: tuple[int, int, int]  # CTAs
    block: tuple[int, int, int]  # threads
    cluster: tuple[int, int, int]  # CTAs
    shared_bytes: int  # dynamic
    params: tuple[TensorMapParam | BufferParam | ScalarParam, ...]
    buffers: tuple[BufferInfo, ...]
    names: tuple[SharedName, ...] = ()
    source: dict[str, str] = field(default_factory=dict)  # {"file", "text"} that `// @src N` lines number
    registers: int = 0  # per thread
    spills: int = 0  # bytes per thread, stores and loads together
    stack: int = 0  # bytes per thread
    tools: dict[str, str] = field(default_factory=dict)  # name -> version
    format: int = FORMAT

    def __post_init__(self):
        _validate(self)

    @property
    def is_draft(self) -> bool:
        return not self.ptx

    @property
    def outputs(self) -> tuple[BufferInfo, ...]:
        """The buffers that the kernel writes."""
        return tuple(b for b in self.buffers if b.role != "in")

    def with_source(self, file: str, text: str) -> Artifact:
        """The same artifact with the text that its `// @src N` markers refer to."""
        return replace(self, source={"file": file, "text": text})

    def save(self, path: str | os.PathLike) -> None:
        """Write the artifact to `path` atomically: a reader never sees half a file."""
        path = Path(path)
        scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            scratch.write_bytes(self.to_bytes())
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)

    def to_bytes(self) -> bytes:
        """The zip that `save` writes; equal artifacts give equal bytes."""
        meta = {k: v for k, v in asdict(self).items() if k not in _MEMBERS}
        members = {"artifact.json": json.dumps(meta, indent=1, sort_keys=True).encode()}
        for name, file in _MEMBERS.items():
            value = getattr(self, name)
            members[file] = value if isinstance(value, bytes) else value.encode()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for file, data in members.items():
                info = zipfile.ZipInfo(file, date_time=(1980, 1, 1, 0, 0, 0))
                archive.writestr(info, data, zipfile.ZIP_DEFLATED)
        return out.getvalue()

    @staticmethod
    def load(path: str | os.PathLike) -> Artifact:
        """Read an artifact; raises ArtifactError with one line if the file is not a valid one."""
        try:
            return _read(path)
        except ArtifactError as error:
            raise ArtifactError(f"{path}: {error}") from None
        except FileNotFoundError:
            raise ArtifactError(f"{path}: no such file") from None
        except _BROKEN as error:
            raise ArtifactError(f"{path}: not an artifact of this lab ({_short(error)})") from None

    @staticmethod
    def from_bytes(data: bytes) -> Artifact:
        """The inverse of `to_bytes`, for bytes from a source that is not trusted; ArtifactError as `load`."""
        try:
            return _read(io.BytesIO(data))
        except ArtifactError:
            raise
        except _BROKEN as error:
            raise ArtifactError(f"not an artifact of this lab ({_short(error)})") from None


_MEMBERS = {"cuda": "kernel.cu", "ptx": "kernel.ptx", "cubin": "kernel.cubin"}
_PARAMS = {"tensor_map": TensorMapParam, "buffer": BufferParam, "scalar": ScalarParam}


def _plain(cls, value: dict):
    """`value` as a `cls`; JSON lists become tuples, missing and extra keys are a TypeError."""
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items()})


_BROKEN: tuple[type[Exception], ...] = (
    OSError,
    zipfile.BadZipFile,
    KeyError,
    ValueError,
    TypeError,
    RecursionError,
    NotImplementedError,
)
_BROKEN += (EOFError, RuntimeError, AttributeError, zlib.error)  # a damaged or encrypted member


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _read(source) -> Artifact:
    """An artifact from a path or a binary file; no member is unpacked past its limit."""
    wanted = {"artifact.json": _META} | dict.fromkeys(_MEMBERS.values(), _MEMBER)
    with zipfile.ZipFile(source) as archive:
        names = [i.filename for i in archive.infolist()]
        if sorted(names) != sorted(wanted):
            raise ArtifactError(f"it holds {len(names)} files, expected {', '.join(wanted)}")
        large = [i.filename for i in archive.infolist() if i.file_size > wanted[i.filename]]
        if large:
            raise ArtifactError(f"{large[0]} is larger than {wanted[large[0]] >> 20} MiB")
        files = {
            name: archive.read(name) for name in wanted
        }  # a member that lies about its size is BadZipFile
    return _from_plain(json.loads(files.pop("artifact.json")), files)


def _from_plain(meta: dict, files: dict[str, bytes]) -> Artifact:
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ArtifactError(
            f"format {meta.get('format') if isinstance(meta, dict) else '?'!r:.20}, "
            f"this version reads format {FORMAT}: build the kernel again"
        )
    return _plain(
        Artifact,
        {
            **meta,
            "params": [_plain(_PARAMS[p["kind"]], p) for p in meta["params"]],
            "buffers": [_plain(BufferInfo, b) for b in meta["buffers"]],
            "names": [_plain(SharedName, n) for n in meta["names"]],
            "cuda": files["kernel.cu"].decode(),
            "ptx": files["kernel.ptx"].decode(),
            "cubin": files["kernel.cubin"],
        },
    )


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise ArtifactError(message)


def _whole(values, low: int, count: int | None = None) -> bool:
    """Whether `values` is a tuple of whole numbers, none below `low`, and `count` of them if given."""
    return (
        isinstance(values, tuple)
        and all(isinstance(v, int) and not isinstance(v, bool) and v >= low for v in values)
        and (count is None or len(values) == count)
    )


def _word(value, limit: int = _NAME) -> bool:
    """Whether this is a short name of printable characters."""
    return isinstance(value, str) and 0 < len(value) <= limit and value.isprintable()


def _validate(a: Artifact) -> None:
    _need(a.format == FORMAT, f"format {a.format!r:.20}, this version reads format {FORMAT}")
    _need(_word(a.arch) and ARCHS.fullmatch(a.arch) is not None, f"arch {a.arch!r:.60}")
    _need(isinstance(a.ptx, str) and isinstance(a.cuda, str), "PTX and CUDA must be text")
    _need(isinstance(a.cubin, bytes), "the cubin must be bytes")
    if a.is_draft:
        found = _word(a.entry) and not a.cubin and re.search(rf"\b{re.escape(a.entry)}\s*\(", a.cuda)
        _need(bool(found), f"the CUDA text has no function {a.entry!r:.60}")
    else:
        found = _word(a.entry) and re.search(rf"\.entry\s+{re.escape(a.entry)}(?![\w$])", a.ptx)
        _need(bool(found), f"the PTX has no entry {a.entry!r:.60}")
    _validate_launch(a)
    for name in ("params", "buffers", "names"):
        _need(
            isinstance(getattr(a, name), tuple) and len(getattr(a, name)) <= _MANY,
            f"{name}: a list, not too long",
        )
    buffers = {b.name: b for b in a.buffers}
    _need(len(buffers) == len(a.buffers), "two buffers share a name")
    for b in a.buffers:
        _validate_buffer(b)
    for p in a.params:
        _validate_param(p, buffers)
    for n in a.names:
        ok = _word(n.name) and _word(n.dtype) and _whole((n.offset, n.size), 0) and _whole(n.shape, 0)
        _need(ok, f"shared-memory name {n.name!r:.60}: offset {n.offset!r:.20}, size {n.size!r:.20}")
    _validate_notes(a)


def _validate_launch(a: Artifact) -> None:
    for name in ("grid", "block", "cluster"):
        value = getattr(a, name)
        _need(
            not (name == "grid" and _whole(value, 0, 3) and 0 in value),
            f"grid {value!r:.60} has no CTA: an extent of cta_id(.., parent='kernel') is 0 for this size and "
            "this SM_COUNT (checks build with few SMs, too); is it divided by more than it has?",
        )
        _need(_whole(value, 1, 3), f"{name} {value!r:.60} is not three positive integers")
    _need(
        all(g % c == 0 for g, c in zip(a.grid, a.cluster, strict=True)),
        f"grid {a.grid} is not a multiple of cluster {a.cluster}: each extent of cta_id(.., parent='kernel') "
        "counts CTAs and is a multiple of that of cta_id(.., parent='cluster')",
    )
    _need(all(g <= most for g, most in zip(a.grid, _GRID, strict=True)), f"grid {a.grid} is too large")
    _need(math.prod(a.block) <= 1024, f"block {a.block} has more than 1024 threads")
    _need(math.prod(a.cluster) <= 16, f"cluster {a.cluster} has more than 16 CTAs")
    _need(_whole((a.shared_bytes, a.registers, a.spills, a.stack), 0), "sizes must be whole numbers")
    _need(a.shared_bytes <= _SHARED, f"{a.shared_bytes} B of shared memory; an SM has {_SHARED}")


def _validate_buffer(b: BufferInfo) -> None:
    ok = _word(b.name) and b.role in ROLES and _word(b.dtype) and _whole(b.shape, 1) and len(b.shape) <= 8
    _need(ok, f"buffer {b.name!r:.60}: shape {b.shape!r:.60}, role {b.role!r:.20}")
    _need(math.prod(b.shape) <= _BUFFER, f"buffer {b.name!r}: shape {b.shape} is too large")


def _validate_param(p, buffers: dict[str, BufferInfo]) -> None:
    if p.kind == "scalar":
        known = _word(p.name) and _word(p.dtype) and isinstance(p.value, int | float)
        _need(known, f"a scalar parameter is not valid: {p!r:.120}")
        return
    _need(
        isinstance(p.buffer, str) and p.buffer in buffers, f"a parameter uses an unknown buffer: {p!r:.120}"
    )
    _need(_whole((p.byte_offset,), 0), f"byte offset {p.byte_offset!r:.20} of {p.buffer!r}")
    if p.kind == "tensor_map":
        _validate_map(p)


def _validate_notes(a: Artifact) -> None:
    """Checks the source text and the tools' versions, which are only shown to people."""
    source, tools = a.source, a.tools
    _need(isinstance(source, dict) and {*source} <= {"file", "text"}, "source has unknown keys")
    file, text = source.get("file", ""), source.get("text", "")
    _need(isinstance(file, str) and isinstance(text, str) and len(text) <= _TEXT, "the source is not text")
    plain = file.isprintable() and len(file) <= _NAME and not set(file) & set("/\\")
    _need(plain, "the source's name is not that of a file without its folder")
    ok = isinstance(tools, dict) and len(tools) <= 32
    _need(ok and all(_word(k) and _word(v) for k, v in tools.items()), "tools are names and versions")


def _validate_map(p: TensorMapParam) -> None:
    rank = len(p.dims) if isinstance(p.dims, tuple) else 0
    ok = 1 <= rank <= 5 and _whole(p.dims, 1) and _whole(p.strides, 0, rank - 1)
    ok = ok and _whole(p.box, 1, rank) and _whole(p.element_strides, 1, rank) and _word(p.dtype)
    _need(
        ok,
        f"the tensor map of {p.buffer!r} has rank {rank}, dims {p.dims!r:.60}, strides {p.strides!r:.60}, "
        f"box {p.box!r:.60}",
    )
    ok = all(v <= 2**40 for v in (*p.dims, *p.strides)) and all(v <= 256 for v in p.box)
    _need(ok, f"the tensor map of {p.buffer!r} is too large: dims {p.dims!r:.60}, box {p.box!r:.60}")
    _need(p.swizzle in (0, 32, 64, 128), f"the tensor map of {p.buffer!r} has swizzle {p.swizzle!r:.20}")
    _need(p.fill in ("zero", "nan"), f"the tensor map of {p.buffer!r} has fill {p.fill!r:.20}")
    _need(_whole((p.interleave, p.l2_promotion), 0), f"the tensor map of {p.buffer!r} has unknown flags")
