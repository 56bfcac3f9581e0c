"""Random tensor copies by TMA on ptxsim and on a GPU: tiles and im2col, loads, stores and reductions.

    python -m research.chip.tensor_copies make FILE [--seed S] [--count N]    draws, and runs each on ptxsim
    python -m research.chip.tensor_copies run FILE RESULTS                    on a GPU: compares bytes

Each case has its own extents, type, swizzle (also wider than a row of the box) and first coordinates; im2col
cases also have their own corners, traversal strides and offsets. This tests on a chip the order of corners
and offsets (W before H before D), the walk over pixels, what lies outside, and where rows lie in shared
memory (PTX ISA 5.5; CUDA driver API, cuTensorMapEncode*). In one case of ten ptxsim reports an error: a copy
off the 16 B grid, or a store outside. The chip is expected to stop there.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from research import store
from tirxlab.devices import driver

SHARED = 65536
FILL = 0xA5  # initial contents of the output and of shared memory
TYPES = {"uint8": 0, "uint16": 1, "int32": 3, "float16": 6, "float32": 7}  # CUtensorMapDataType
SWIZZLES = (0, 32, 64, 128)
MODES = ("load", "store", "add")
KINDS = ("legal", "off the grid", "store outside")
MOST_FAULTS = 130  # after so many, the rest is left out
HEAD = """.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p_at, .param .u64 p_data, .param .u32 p_room,
                  .param .u32 p_bytes) {
.reg .b32 %c<5>, %t, %b, %s, %n, %o, %v<4>; .reg .b64 %at, %data, %m, %y; .reg .b16 %h<3>; .reg .pred %q, %k;
.shared .align 8 .b8 bar[8];
ld.param.u64 %at, [p_at]; ld.param.u64 %data, [p_data]; ld.param.u32 %n, [p_room];
mov.b64 %m, map; cvta.param.u64 %m, %m;
mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 0; mov.u32 %b, bar; mov.u32 %s, dynamic;
"""
MOVE = """shl.b32 %o, %t, 4;
{label}: setp.ge.u32 %k, %o, %n; @%k bra {label}_END;
cvt.u64.u32 %y, %o; add.u64 %y, %data, %y; add.u32 %c0, %s, %o;
{move}
add.u32 %o, %o, 512; bra {label};
{label}_END:
"""
IN = "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%y]; st.shared.v4.b32 [%c0], {%v0, %v1, %v2, %v3};"
OUT = "ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%c0]; st.global.v4.b32 [%y], {%v0, %v1, %v2, %v3};"
LOAD = """@%q mbarrier.init.shared::cta.b64 [%b], 1; @%q fence.mbarrier_init.release.cluster; bar.sync 0;
ld.param.u32 %o, [p_bytes]; @!%q bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %o;
cp.async.bulk.tensor.{rank}d.shared::cluster.global{how}.mbarrier::complete_tx::bytes [%s], [%m, {at}],
  [%b]{moves};
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %k, [%b], 0; @!%k bra WAIT;
"""
STORE = """@!%q bra END;
{form}{how}.bulk_group [%m, {at}], [%s];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""
FORMS = {
    "store": "cp.async.bulk.tensor.{rank}d.global.shared::cta",
    "add": "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add",
}


def kernel(mode: str, rank: int, im2col: bool) -> str:
    """PTX: `load` fills the first p_room bytes at p_data; the other modes store from there."""
    names = [f"%h{i}" for i in range(rank - 2)] if im2col and mode == "load" else []
    read = [f"ld.global.u32 %c{i}, [%at+{4 * i}];" for i in range(rank)]
    read += [f"ld.global.u16 {name}, [%at+{4 * (5 + i)}];" for i, name in enumerate(names)]
    at, first = "{" + ", ".join(f"%c{i}" for i in range(rank)) + "}", MOVE.format(label="FIRST", move=IN)
    ready = first + "fence.proxy.async.shared::cta; bar.sync 0;\n" + "\n".join(read) + "\n"
    if mode == "load":
        moves, how = ", {" + ", ".join(names) + "}" if names else "", ".im2col" if im2col else ".tile"
        body = LOAD.format(rank=rank, at=at, moves=moves, how=how) + MOVE.format(label="LAST", move=OUT)
    else:
        how = ".im2col_no_offs" if im2col else ".tile"
        body = STORE.format(form=FORMS[mode].format(rank=rank), at=at, how=how)
    return HEAD + ready + body + "ret; }\n"


def drawn(draw: random.Random) -> dict:
    """A random case of one kind; nine in ten are legal."""
    wanted = draw.choices(KINDS, (18, 1, 1))[0]
    while True:
        case = _im2col(draw) if draw.random() < 0.6 else _tile(draw)
        if case["mode"] == "add" and case["dtype"] in ("uint8", "uint16"):
            continue  # no such reduction
        off = case["start"][0] * np.dtype(case["dtype"]).itemsize % 16 > 0
        low, high = min(*case["start"], *case.get("lower", ())), max(case.get("upper", (0,)))
        outside = case["mode"] != "load" and (low < 0 or high > 0)
        kind = KINDS[2] if outside else KINDS[1] if off else KINDS[0]
        if kind == wanted and not (off and outside):
            return case | {"kind": kind}


def _box(draw: random.Random) -> tuple[dict, int]:
    """(fields that all cases have, number of elements in 16 bytes)."""
    dtype, swizzle = draw.choice([*TYPES]), draw.choice(SWIZZLES)
    step = 16 // np.dtype(dtype).itemsize
    nan = dtype.startswith("float") and draw.random() < 0.2
    case = {"mode": draw.choice(MODES), "dtype": dtype, "swizzle": swizzle, "nan": nan}
    return case | {"channels": step * draw.randint(1, (swizzle or 64) // 16)}, step


def _first(draw: random.Random, step: int, extent: int) -> int:
    """A coordinate of the innermost dimension, usually on the 16-byte grid."""
    grid = step * draw.randint(-1, extent // step - 1)
    return grid if draw.random() < 0.7 else draw.randint(-step, extent - 1)


def _tile(draw: random.Random) -> dict:
    """A two-dimensional box."""
    case, step = _box(draw)
    dims = [step * draw.randint(1, 6), draw.randint(2, 60)]
    row = case["channels"] * np.dtype(case["dtype"]).itemsize
    pixels = draw.randint(1, min(256, SHARED // 2 // max(row, case["swizzle"])))
    start = [_first(draw, step, dims[0]), draw.randint(-3, dims[1] - 1)]
    return case | {"dims": dims, "pixels": pixels, "steps": [1, 1], "start": start}


def _im2col(draw: random.Random) -> dict:
    """Extents and corners, innermost first, with the first pixel inside the bounding box."""
    case, step = _box(draw)
    rank = draw.randint(3, 5)
    dims = [step * draw.randint(1, 6), *(draw.randint(2, 14) for _ in range(rank - 2)), draw.randint(1, 4)]
    while True:
        lower, upper = ([draw.randint(-3, 2) for _ in range(rank - 2)] for _ in range(2))
        last = [d - 1 + u for d, u in zip(dims[1:-1], upper, strict=True)]
        if all(low <= high for low, high in zip(lower, last, strict=True)):
            break
    first = [draw.randint(low, high) for low, high in zip(lower, last, strict=True)]
    start = [_first(draw, step, dims[0]), *first, draw.randint(0, dims[-1] - 1)]
    steps = [1, *(draw.choice((1, 1, 2, 3)) for _ in range(rank - 2)), 1]
    row = case["channels"] * np.dtype(case["dtype"]).itemsize
    pixels = draw.randint(1, min(300, SHARED // 2 // max(row, case["swizzle"])))
    offsets = [draw.randint(0, 4) for _ in range(rank - 2)]
    where = {"dims": dims, "lower": lower, "upper": upper, "start": start, "offsets": offsets}
    return case | where | {"steps": steps, "pixels": pixels}


def bytes_of(case: dict) -> tuple[int, int]:
    """(bytes of the copy, bytes moved between shared memory and the array)."""
    row = case["channels"] * np.dtype(case["dtype"]).itemsize
    room = case["pixels"] * max(row, case["swizzle"])
    return case["pixels"] * row, -(-room // 1024) * 1024


def arrays(case: dict, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the tensor, coordinates and offsets, the data of shared memory), before the launch."""
    source = np.random.default_rng(seed)
    tensor = source.integers(0, 100, case["dims"][::-1]).astype(case["dtype"])
    at, offsets = np.zeros(8, np.int32), case.get("offsets", [])
    at[: len(case["start"])], at[5 : 5 + len(offsets)] = case["start"], offsets
    room = bytes_of(case)[1]
    if case["mode"] == "load":
        return tensor, at, np.full(room, FILL, np.uint8)
    data = source.integers(0, 100, room // np.dtype(case["dtype"]).itemsize).astype(case["dtype"])
    return tensor, at, data.view(np.uint8)


def form_of(case: dict) -> tuple[str, int, bool]:
    """What identifies the kernel of a case: (mode, rank, whether it is im2col)."""
    return case["mode"], len(case["dims"]), "lower" in case


def tensor_map(case: dict, tensor: np.ndarray):
    import ptxsim

    box, fill = (case["channels"], case["pixels"]), "nan" if case["nan"] else "zero"
    if "lower" not in case:
        return ptxsim.TensorMap(tensor, box, case["swizzle"], fill=fill)
    corners = {name: tuple(case[name]) for name in ("lower", "upper")}
    steps = tuple(case["steps"])
    return ptxsim.Im2colMap(tensor, box, case["swizzle"], element_strides=steps, fill=fill, **corners)


def make(file: Path, seed: int, count: int) -> None:
    import ptxsim

    draw, files, modules = random.Random(seed), {}, {}
    cases = sorted((drawn(draw) for _ in range(count)), key=lambda case: KINDS.index(case["kind"]))
    for number, case in enumerate(cases):
        form = form_of(case)
        modules[form] = modules.get(form) or ptxsim.load(kernel(*form))
        tensor, at, data = arrays(case, number)
        size, room = bytes_of(case)
        args = [tensor_map(case, tensor), at, data, np.uint32(room), np.uint32(size)]
        run = modules[form].launch("k", args=args, block=32, shared_bytes=SHARED)
        if (run.verdict == "error") == (case["kind"] == KINDS[0]):
            raise SystemExit(f"case {number} {case}: {run.verdict} {run.findings}")
        files[f"{number}.bin"] = (data if case["mode"] == "load" else tensor).tobytes()
    texts = {" ".join(map(str, form)): kernel(*form) for form in modules}
    files |= {"kernels.json": json.dumps(texts).encode(), "index.json": json.dumps(cases).encode()}
    store.save(file, files)
    print(f"{count} cases")


# ---- on the chip ----


def on_the_chip(function, case: dict, number: int) -> bytes:
    api, call = driver.api(), driver.call
    tensor, at, data = arrays(case, number)
    pointers = []
    for array in (tensor, at, data):
        pointers.append(int(call(api.cuMemAlloc, array.nbytes)))
        call(api.cuMemcpyHtoD, pointers[-1], np.ascontiguousarray(array), array.nbytes)
    size, room = bytes_of(case)
    values = (encoded(api, case, pointers[0]), pointers[1], pointers[2], room, size)
    kinds = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
    call(api.cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, SHARED, 0, (values, kinds), 0)
    call(api.cuCtxSynchronize)
    at_out, out = (pointers[2], data) if case["mode"] == "load" else (pointers[0], tensor)
    found = np.zeros(out.nbytes, np.uint8)
    call(api.cuMemcpyDtoH, found, at_out, found.nbytes)
    for pointer in pointers:
        call(api.cuMemFree, pointer)
    return found.tobytes()


def encoded(api, case: dict, address: int):
    """The tensor map as the driver encodes it."""
    size, dims, wide, narrow = np.dtype(case["dtype"]).itemsize, case["dims"], api.cuuint64_t, api.cuuint32_t
    strides = [wide(size * int(np.prod(dims[: i + 1]))) for i in range(len(dims) - 1)]
    first = (
        api.CUtensorMapDataType(TYPES[case["dtype"]]),
        len(dims),
        address,
        [wide(d) for d in dims],
        strides,
    )
    box, steps = (case["channels"], case["pixels"]), [narrow(s) for s in case["steps"]]
    swizzle = api.CUtensorMapSwizzle(SWIZZLES.index(case["swizzle"]))
    last = (api.CUtensorMapInterleave(0), swizzle, api.CUtensorMapL2promotion(0))
    fill = api.CUtensorMapFloatOOBfill(int(case["nan"]))
    if "lower" not in case:
        return driver.call(api.cuTensorMapEncodeTiled, *first, [narrow(b) for b in box], steps, *last, fill)
    corners = case["lower"], case["upper"]
    return driver.call(api.cuTensorMapEncodeIm2col, *first, *corners, *box, steps, *last, fill)


def work(file: Path, first: int) -> None:
    """Runs the cases from `first` on, a JSON line each, up to the first that faults: then its context is
    lost.
    """
    from research.chip.run import gpu

    print(json.dumps(gpu()), flush=True)
    files, api, call = store.load(file), driver.api(), driver.call
    functions = {}
    for name, text in json.loads(files["kernels.json"]).items():
        module = call(api.cuModuleLoadData, text.encode() + b"\0")
        functions[name] = call(api.cuModuleGetFunction, module, b"k")
        shared = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call(api.cuFuncSetAttribute, functions[name], shared, SHARED)
    for number, case in [*enumerate(json.loads(files["index.json"]))][first:]:
        expected = np.frombuffer(files[f"{number}.bin"], np.uint8)
        try:
            found = np.frombuffer(
                on_the_chip(functions[" ".join(map(str, form_of(case)))], case, number), np.uint8
            )
            wrong = int((found != expected).sum())
            print(json.dumps(f"{wrong} of {len(expected)} B differ" if wrong else ""), flush=True)
        except driver.LaunchError as error:
            print(json.dumps(str(error)), flush=True)
            return


def run(file: Path, results: Path) -> None:
    cases = json.loads(store.load(file)["index.json"])
    said: list[str] = []
    faults = 0
    while len(said) < len(cases) and faults < MOST_FAULTS:
        faults += 1
        command = [
            sys.executable,
            "-m",
            "research.chip.tensor_copies",
            "work",
            str(file),
            "--first",
            str(len(said)),
        ]
        lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300).stdout.splitlines()
        machine, *more = [json.loads(line) for line in lines]
        if not more:
            raise SystemExit(f"the worker died at case {len(said)}")
        said += more
    found = summary(cases[: len(said)], said)
    results.write_text(json.dumps(machine | found, indent=1) + "\n")
    print(f"{len(said)} of {len(cases)} cases\n" + json.dumps(found["counts"], indent=1))


def summary(cases: list[dict], said: list[str]) -> dict:
    """{"counts": "kind, form, mode: what the chip did" -> cases, "differ": legal cases with differences}."""
    did = ["equal" if not text else "stops" if "CUDA_ERROR" in text else "other bytes" for text in said]
    names = [f"{c['kind']}, {'im2col' if 'lower' in c else 'tile'} {c['mode']}" for c in cases]
    counts = Counter(f"{name}: {what}" for name, what in zip(names, did, strict=True))
    differ = [{"chip": t} | c for c, t in zip(cases, said, strict=True) if t and c["kind"] == KINDS[0]]
    return {"counts": dict(sorted(counts.items())), "differ": differ}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("make", "run", "work"))
    parser.add_argument("file", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if wrong := store.wrong_name(given.file):
        parser.error(wrong)
    if given.command == "make":
        make(given.file, given.seed, given.count)
    elif given.command == "work":
        work(given.file, given.first)
    else:
        run(given.file, given.results)


if __name__ == "__main__":
    main()
