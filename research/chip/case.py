"""Programs that run on a GPU and on ptxsim, with ptxsim's results: the unit of the differential set.

A set is one store: `index.json`, and per case an artifact (PTX, launch, tensor maps) and its arrays.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from research import store
from research.chip.tolerance import SCALARS, as_float
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, TensorMapParam

HEAD = ".version {version}\n.target {target}\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
REGISTERS = """.reg .b32 %r<160>, %o<140>, %x<32>, %t, %n, %sm; .reg .b64 %in, %out, %step, %wide, %y<16>, %e<40>;
.reg .b16 %h<16>; .reg .f32 %f<16>; .reg .f64 %d<16>; .reg .pred %p, %q, %s<8>;
"""


@dataclass
class Case:
    """One launch. `arrays` by buffer name in kernel order; outputs hold their initial contents."""

    name: str
    ptx: str
    arrays: dict[str, np.ndarray]
    outputs: tuple[str, ...]
    block: int = 32
    grid: int = 1
    cluster: int = 1
    shared: int = 0  # dynamic, bytes
    arch: str = "sm_90a"
    maps: dict[str, dict] = field(default_factory=dict)  # buffer -> fields of its TensorMapParam
    compare: str = "bits"  # or the float type of the outputs' elements: then all NaNs are equal
    rtol: float = 0.0  # for floats
    atol: float = 0.0

    def artifact(self, entry: str = "k") -> Artifact:
        buffers = tuple(
            BufferInfo(name, a.shape, str(a.dtype), "inout" if name in self.outputs else "in")
            for name, a in self.arrays.items()
        )
        params = tuple(
            TensorMapParam(buffer=name, **self.maps[name]) if name in self.maps else BufferParam(name)
            for name in self.arrays
        )
        return Artifact(
            arch=self.arch,
            entry=entry,
            cuda="",
            ptx=self.ptx,
            cubin=b"",
            grid=(self.grid, 1, 1),
            block=(self.block, 1, 1),
            cluster=(self.cluster, 1, 1),
            shared_bytes=self.shared,
            params=params,
            buffers=buffers,
        )


def program(
    body: str, parameters=("in", "out"), target: str = "sm_90a", version: str = "9.0", maps=()
) -> str:
    """PTX of kernel `k`. In `body`: %t thread, %n threads, %sm dynamic shared memory, %in and %out (the
    parameters of those names, as global addresses), %p true, %q false; scratch %r, %x, %o (32 bits), %y, %e
    (64), %h (16), %f, %d, %s.
    """
    declared = ", ".join(
        f".param .align 64 .b8 {p}_map[128]" if p in maps else f".param .u64 p_{p}" for p in parameters
    )
    pointers = "".join(
        f"ld.param.u64 %{p}, [p_{p}]; cvta.to.global.u64 %{p}, %{p};\n"
        for p in parameters
        if p not in maps and p in ("in", "out")
    )
    return f"""{HEAD.format(target=target, version=version)}
.visible .entry k({declared}) {{
{REGISTERS}{pointers}mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %sm, dynamic;
setp.eq.u32 %p, %t, %t; setp.ne.u32 %q, %t, %t;
{body}
ret;
}}
"""


def rows(registers: list[str], kind: str = "b32", load: bool = True, base: str = "") -> str:
    """Loads (stores) one register per row of a (rows, threads) array in %in
    (%out), and advances the pointer.
    """
    base, size = base or ("%in" if load else "%out"), 8 if kind.endswith("64") else 4
    lines = [
        f"mul.wide.u32 %wide, %t, {size}; add.u64 {base}, {base}, %wide; mul.wide.u32 %step, %n, {size};"
    ]
    for register in registers:
        access = (
            f"ld.global.{kind} {register}, [{base}];" if load else f"st.global.{kind} [{base}], {register};"
        )
        lines.append(f"{access} add.u64 {base}, {base}, %step;")
    return "\n".join(lines) + "\n"


def names(prefix: str, count: int, first: int = 0) -> list[str]:
    return [f"%{prefix}{first + i}" for i in range(count)]


def vector(registers: list[str]) -> str:
    return "{" + ", ".join(registers) + "}"


# ---- sets ----


def save_set(path: Path, cases: list[tuple[Case, dict[str, np.ndarray]]], about: dict) -> None:
    """Writes cases with the outputs that ptxsim computed."""
    index = {"about": about, "cases": []}
    files: dict[str, bytes] = {}
    for case, expected in cases:
        plain = {key: getattr(case, key) for key in ("name", "outputs", "compare", "rtol", "atol")}
        index["cases"].append(plain)
        arrays = io.BytesIO()
        raw = {f"in_{k}": v.reshape(-1).view(np.uint8) for k, v in case.arrays.items()}
        raw |= {f"out_{k}": v.reshape(-1).view(np.uint8) for k, v in expected.items()}
        np.savez(arrays, **raw)
        files[f"{case.name}/artifact.lab"] = case.artifact().to_bytes()
        files[f"{case.name}/arrays.npz"] = arrays.getvalue()
    store.save(path, files | {"index.json": json.dumps(index, indent=1).encode()})


@dataclass
class Loaded:
    """A case read from a set; needs neither ptxsim nor TVM."""

    name: str
    artifact: Artifact
    arrays: dict[str, np.ndarray]  # uint8, by buffer
    expected: dict[str, np.ndarray]  # uint8, by output
    compare: str
    rtol: float
    atol: float


def load_set(path: Path, only: str = "") -> tuple[dict, list[Loaded]]:
    """(about, cases whose name contains `only`)."""
    found = []
    files = store.load(path)
    index = json.loads(files["index.json"])
    for entry in index["cases"]:
        if only not in entry["name"]:
            continue
        artifact = Artifact.from_bytes(files[f"{entry['name']}/artifact.lab"])
        arrays = np.load(io.BytesIO(files[f"{entry['name']}/arrays.npz"]))
        found.append(
            Loaded(
                entry["name"],
                artifact,
                {b.name: arrays[f"in_{b.name}"] for b in artifact.buffers},
                {name: arrays[f"out_{name}"] for name in entry["outputs"]},
                entry["compare"],
                entry["rtol"],
                entry["atol"],
            )
        )
    return index["about"], found


def case_names(path: Path, only: str = "") -> tuple[dict, list[str]]:
    """(about, names of the cases that contain `only`)."""
    index = json.loads(store.load(path)["index.json"])
    return index["about"], [c["name"] for c in index["cases"] if only in c["name"]]


# ---- comparison ----


def difference(case: Loaded, name: str, got: np.ndarray) -> str:
    """How the chip's output differs from ptxsim's; "" if nothing that counts differs."""
    expected, got = case.expected[name], got.reshape(-1).view(np.uint8)
    if np.array_equal(expected, got):
        return ""
    if case.compare.startswith("scalar:"):
        return _scalar_difference(case, expected.view(np.uint64), got.view(np.uint64))
    if case.compare == "bits":
        at = np.flatnonzero(expected != got)
        word = at[0] // 4 * 4
        return (
            f"{name}: {len(at)} of {len(got)} bytes, first at {at[0]}: chip "
            f"{bytes(got[word : word + 4]).hex()}, ptxsim {bytes(expected[word : word + 4]).hex()}"
        )
    a, b = as_float(expected, case.compare), as_float(got, case.compare)
    good = np.isclose(b, a, rtol=case.rtol, atol=case.atol, equal_nan=True)
    if good.all():
        return ""
    at = int(np.flatnonzero(~good)[0])
    return f"{name}: {(~good).sum()} of {len(a)} values, first at {at}: chip {b[at]!r}, ptxsim {a[at]!r}"


def _scalar_difference(case: Loaded, expected: np.ndarray, got: np.ndarray) -> str:
    """Compares rows of results and of the carry. Any NaN equals any other: PTX
    does not specify their bits.
    """
    _, kind, mods = case.compare.split(":")
    floats = [m.removesuffix("x2") for m in mods.split(".") if m.removesuffix("x2") in SCALARS]
    held = kind if kind in SCALARS else floats[0] if floats and kind[0] == "b" else None
    if held in ("f16", "bf16") and kind == "b32":
        expected, got = (x.astype(np.uint32).view(np.uint16).astype(np.uint64) for x in (expected, got))
    good = expected == got
    if held is not None:
        width, name = SCALARS[held]
        a, b = (as_float(x.astype(f"u{width}"), name) for x in (expected, got))
        with np.errstate(invalid="ignore"):
            good |= np.isclose(b, a, rtol=case.rtol, atol=case.atol) & (case.rtol + case.atol > 0)
        good |= np.isnan(a) & np.isnan(b)
    if good.all():
        return ""
    at = int(np.flatnonzero(~good)[0])
    return f"{(~good).sum()} of {len(good)}, first at {at}: chip {got[at]:#x}, ptxsim {expected[at]:#x}"
