"""A compiled kernel as plain data: what every device, inspector and grader reads.

An artifact is one zip of JSON, text and the cubin; no pickle, no TVM, no GPU is needed to load it.
Dimensions of tensor maps are innermost first and strides are in bytes, as in `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

import io
import json
import os
import re
import threading
import zipfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

FORMAT = 1
ROLES = ("in", "out", "inout")
ARCHS = re.compile(r"sm_\d+[af]?")
_MAX_MEMBER = 256 << 20


class ArtifactError(ValueError):
    """The file is no artifact, or one that this version cannot use; the message is one line."""


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
    """One kernel, compiled for one architecture. `params` are in the order of the PTX entry."""

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
    def outputs(self) -> tuple[BufferInfo, ...]:
        """The buffers that the kernel writes."""
        return tuple(b for b in self.buffers if b.role != "in")

    def with_source(self, file: str, text: str) -> Artifact:
        """The same artifact with the text that its `// @src N` markers refer to."""
        return replace(self, source={"file": file, "text": text})

    def save(self, path: str | os.PathLike) -> None:
        """Write the artifact to `path` in one step: a reader never sees half a file."""
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
            with zipfile.ZipFile(path) as archive:
                large = [i.filename for i in archive.infolist() if i.file_size > _MAX_MEMBER]
                if large:
                    raise ArtifactError(f"{path}: {large[0]} is larger than {_MAX_MEMBER >> 20} MiB")
                files = {name: archive.read(name) for name in ("artifact.json", *_MEMBERS.values())}
            meta = json.loads(files.pop("artifact.json"))
            return _from_plain(meta, files)
        except ArtifactError as error:
            raise ArtifactError(f"{path}: {error}") from None
        except FileNotFoundError:
            raise ArtifactError(f"{path}: no such file") from None
        except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
            raise ArtifactError(f"{path}: not an artifact of this lab ({error})") from None


_MEMBERS = {"cuda": "kernel.cu", "ptx": "kernel.ptx", "cubin": "kernel.cubin"}
_PARAMS = {"tensor_map": TensorMapParam, "buffer": BufferParam, "scalar": ScalarParam}


def _plain(cls, value: dict):
    """`value` as a `cls`; JSON lists become tuples, missing and extra keys are a TypeError."""
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items()})


def _from_plain(meta: dict, files: dict[str, bytes]) -> Artifact:
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ArtifactError(
            f"format {meta.get('format') if isinstance(meta, dict) else '?'}, "
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
    """Are these `count` whole numbers, none below `low`?"""
    return (
        isinstance(values, tuple)
        and all(isinstance(v, int) and not isinstance(v, bool) and v >= low for v in values)
        and (count is None or len(values) == count)
    )


def _validate(a: Artifact) -> None:
    _need(a.format == FORMAT, f"format {a.format}, this version reads format {FORMAT}")
    _need(isinstance(a.arch, str) and ARCHS.fullmatch(a.arch) is not None, f"arch {a.arch!r}")
    _need(isinstance(a.ptx, str) and isinstance(a.cuda, str), "PTX and CUDA must be text")
    _need(isinstance(a.cubin, bytes), "the cubin must be bytes")
    entry = isinstance(a.entry, str) and re.search(rf"\.entry\s+{re.escape(a.entry)}\b", a.ptx)
    _need(bool(entry), f"the PTX has no entry {a.entry!r}")
    for name in ("grid", "block", "cluster"):
        _need(_whole(getattr(a, name), 1, 3), f"{name} {getattr(a, name)!r} is not three positive integers")
    _need(
        all(g % c == 0 for g, c in zip(a.grid, a.cluster, strict=True)),
        f"grid {a.grid} is no multiple of cluster {a.cluster}",
    )
    _need(_whole((a.shared_bytes, a.registers, a.spills, a.stack), 0), "sizes must be whole numbers")
    buffers = {b.name: b for b in a.buffers}
    _need(len(buffers) == len(a.buffers), "two buffers share a name")
    for b in a.buffers:
        _need(b.role in ROLES and _whole(b.shape, 1), f"buffer {b.name!r}: shape {b.shape}, role {b.role!r}")
    for p in a.params:
        _need(p.kind == "scalar" or p.buffer in buffers, f"a parameter uses an unknown buffer: {p}")
        if p.kind == "tensor_map":
            _validate_map(p)
    for n in a.names:
        _need(
            _whole((n.offset, n.size), 0), f"shared-memory name {n.name!r}: offset {n.offset}, size {n.size}"
        )
    _need({*a.source} <= {"file", "text"}, f"source has unknown keys: {sorted(a.source)}")


def _validate_map(p: TensorMapParam) -> None:
    rank = len(p.dims)
    ok = 1 <= rank <= 5 and _whole(p.dims, 1) and _whole(p.strides, 0, rank - 1)
    ok = ok and _whole(p.box, 1, rank) and _whole(p.element_strides, 1, rank)
    _need(
        ok, f"the tensor map of {p.buffer!r} has rank {rank}, dims {p.dims}, strides {p.strides}, box {p.box}"
    )
    _need(p.swizzle in (0, 32, 64, 128), f"the tensor map of {p.buffer!r} has swizzle {p.swizzle}")
    _need(p.fill in ("zero", "nan"), f"the tensor map of {p.buffer!r} has fill {p.fill!r}")
