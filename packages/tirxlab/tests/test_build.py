"""build(): launch data, shared-memory names, source lines, resources."""

import re
from collections import Counter
from pathlib import Path

import pytest
import tvm
from host_oracle import ENCODE, FakeTensor, launches
from small_kernel import line_with, loader

from tirxlab.artifact import BufferParam, TensorMapParam
from tirxlab.dialect import info_of
from tirxlab.steps import load_kernels
from tirxlab.toolchain import build as build_package
from tirxlab.toolchain import nvrtc, shared_maps
from tirxlab.toolchain.build import build
from tirxlab.toolchain.markers import with_markers

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
SIZES = {1: (128, 128, 64), 2: (128, 128, 192), 3: (256, 384, 128), 4: (256, 384, 192), 5: (384, 256, 320)}


@pytest.fixture(scope="module", autouse=True)
def shared_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def solutions():
    return load_kernels(SOLUTIONS)


def reference(solutions, step):
    return getattr(solutions, f"hgemm_v{step}")(*SIZES.get(step, (1024, 2048, 192)))


# --- launch data ---


def expected_map(buffer, address, args):
    """A TensorMapParam from the arguments that the host function passed to the driver."""
    dtype, rank, base, *numbers = args[1:]
    dims, strides = numbers[:rank], numbers[rank : 2 * rank - 1]
    box, steps = numbers[2 * rank - 1 : 3 * rank - 1], numbers[3 * rank - 1 : 4 * rank - 1]
    interleave, swizzle, promotion, fill = numbers[4 * rank - 1 :]
    return TensorMapParam(
        buffer,
        base - address,
        dtype,
        tuple(dims),
        tuple(strides),
        tuple(box),
        tuple(steps),
        interleave,
        (0, 32, 64, 128)[swizzle],
        promotion,
        ("zero", "nan")[fill],
    )


@pytest.mark.parametrize("step", range(1, 11))
def test_launch_data_equals_what_tvms_host_function_does(solutions, step):
    kernel = reference(solutions, step)
    info = info_of(kernel)
    _, read = build_package._lower(kernel, info, "sm_100a")
    addresses = {b.name: (i + 1) << 28 for i, b in enumerate(info.buffers)}
    tensors = [FakeTensor(b.shape, addresses[b.name]) for b in info.buffers]
    calls = launches(kernel, tensors, read.entry)
    maps, pointers = {}, {address: BufferParam(name) for name, address in addresses.items()}
    for name, args in calls:
        if name == ENCODE:
            owner = max((n for n in addresses if addresses[n] <= args[3]), key=addresses.get)
            maps[args[0]] = expected_map(owner, addresses[owner], args)
    (launch,) = [args for name, args in calls if name == read.entry]
    count = len(read.params)
    assert read.params == tuple(maps.get(a) or pointers[a] for a in launch[:count])
    assert launch[-1] == read.shared_bytes
    sizes = [*read.grid, *read.block, *read.cluster]
    assert sorted(v for v in launch[count:-1] if v != 1) == sorted(v for v in sizes if v != 1)


@pytest.mark.parametrize("step", [5, 6])
def test_copies_of_one_tensor_share_its_map(solutions, step):
    """Both steps load A and B in two places."""
    kernel = reference(solutions, step)
    _, read = build_package._lower(kernel, info_of(kernel), "sm_100a")
    assert [param.buffer for param in read.params] == ["A", "B", "D"]


def test_a_buffer_is_told_from_another_of_the_same_name():
    a, b = (tvm.tirx.decl_buffer((64, 64), "float16", name="A", layout="default") for _ in range(2))
    made = [[shared_maps.buffer_base(one, auto=True, stage="test") for one in (a, b)] for _ in range(50)]
    keys = {tuple(key for _, key, _ in pair) for pair in made}
    assert len(keys) == 1 and len(set(keys.pop())) == 2


@pytest.mark.parametrize(
    ("step", "grid", "block", "cluster"),
    [
        (1, (1, 1, 1), (128, 1, 1), (1, 1, 1)),
        (3, (2, 3, 1), (128, 1, 1), (1, 1, 1)),
        (6, (148, 1, 1), (128, 1, 1), (1, 1, 1)),
        (8, (148, 1, 1), (256, 1, 1), (1, 1, 1)),
        (9, (148, 1, 1), (256, 1, 1), (2, 1, 1)),
        (10, (148, 1, 1), (384, 1, 1), (2, 1, 1)),
    ],
)
def test_shape_of_the_launch(solutions, step, grid, block, cluster):
    artifact = build(reference(solutions, step))
    assert (artifact.grid, artifact.block, artifact.cluster) == (grid, block, cluster)
    assert [(b.name, b.role) for b in artifact.buffers] == [("A", "in"), ("B", "in"), ("D", "out")]
    assert artifact.spills == 0 and 0 < artifact.registers <= 255
    assert artifact.cubin[:4] == b"\x7fELF" and f".entry {artifact.entry}(" in artifact.ptx
    assert artifact.source == {"file": "gemm_kernels.py", "text": SOLUTIONS.read_text()}


def test_names_of_shared_memory(solutions):
    names = {n.name: n for n in build(reference(solutions, 7)).names}
    barriers = {"tma2mma": 2, "mma2tma": 2, "mma2ld": 1, "ld2mma": 1}
    assert {name: names[name].shape for name in barriers} == {n: (d,) for n, d in barriers.items()}
    assert all(names[n].dtype == "uint64" and names[n].size == 8 * d for n, d in barriers.items())
    for buffer in ("Asmem", "Bsmem"):
        assert names[buffer].offset % 1024 == 0 and names[buffer].size == 2 * 128 * 64 * 2


def test_tensor_map_of_a_small_kernel():
    artifact = build(loader())
    assert artifact.params[0] == TensorMapParam(
        "A", 0, "float16", (128, 256), (256,), (64, 64), (1, 1), 0, 128, 2, "zero"
    )
    assert artifact.params[1] == BufferParam("D")
    assert [(n.name, n.offset, n.size) for n in artifact.names] == [("loaded", 0, 16), ("tile", 1024, 8192)]
    assert artifact.shared_bytes == 1024 + 8192


@pytest.mark.parametrize(("arch", "target"), [("sm_90a", "sm_90a"), ("sm_100a", "sm_100a")])
def test_arch_reaches_the_ptx(arch, target):
    assert re.search(rf"^\.target {target}$", build(loader(), arch).ptx, re.MULTILINE)


# --- source lines ---


def lines_of(ptx: str, opcode: str) -> set[int]:
    """The marker in force at each instruction that starts with `opcode`."""
    found, current = set(), None
    for text in ptx.splitlines():
        if marker := re.search(r"// @src (\d+)", text):
            current = int(marker[1])
        elif text.strip().startswith(opcode):
            found.add(current)
    return found


@pytest.mark.parametrize(
    ("opcode", "place"),
    [
        ("mbarrier.init", "init"),
        ("cp.async.bulk.tensor", "copy"),
        ("mbarrier.arrive.expect_tx", "arrive"),
        ("mbarrier.try_wait", "wait"),
        ("st.global", "store"),
    ],
)
def test_instructions_carry_the_students_line(opcode, place):
    assert lines_of(build(loader()).ptx, opcode) == {line_with(place)}


EFFECT = re.compile(r"(ld|st|mbarrier|tcgen05|cp|bar|barrier|fence|bra|ret|elect|shfl|red|atom)\b")


def instructions(ptx: str) -> list[str]:
    """The statements without comments and register numbers."""
    lines = [re.sub(r"//.*", "", line).strip() for line in ptx.splitlines()]
    return [re.sub(r"%(rd|rs|r|p|f|fd)\d+", r"%\1", line) for line in lines if line]


@pytest.mark.parametrize("step", [4, 10])
def test_markers_change_no_instruction(solutions, step):
    kernel = reference(solutions, step)
    info = info_of(kernel)
    bare, marked = (
        nvrtc.compile_cuda(build_package._lower(k, info, "sm_100a")[0], "sm_100a")
        for k in (kernel, with_markers(kernel, info.file))
    )
    assert "@src" not in bare.ptx and marked.ptx.count("@src") > 20
    before, after = instructions(bare.ptx), instructions(marked.ptx)
    assert Counter(before) == Counter(after)
    # Arithmetic on registers may be scheduled elsewhere; instructions with an effect keep their order.
    assert [i for i in before if EFFECT.search(i)] == [i for i in after if EFFECT.search(i)]
    assert (bare.registers, bare.spills, bare.stack) == (marked.registers, marked.spills, marked.stack)


# --- resources ---


def test_resources_of_the_named_kernel():
    log = (
        "ptxas info : Compiling entry function 'first' for 'sm_100a'\n"
        "ptxas info : Function properties for first\n"
        "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info : Used 40 registers, used 1 barriers\n"
        "ptxas info : Compiling entry function 'second' for 'sm_100a'\n"
        "ptxas info : Function properties for second\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info : Used 168 registers, used 1 barriers\n"
    )
    assert nvrtc.resources(log, "first") == (40, 16, 8)
    assert nvrtc.resources(log, "second") == (168, 0, 0)
    assert nvrtc.resources(log) == (168, 16, 8)
    with pytest.raises(ValueError, match="no resource figures"):
        nvrtc.resources("nothing")


def test_spills_are_seen():
    sums = "\n".join(f"float v{i} = p[{i}] * n;" for i in range(80))
    uses = "\n".join(f"p[{i}] = v{i};" for i in range(80))
    head = 'extern "C" __global__ void __launch_bounds__(1024, 2) many(volatile float* p, float n)'
    source = f"{head} {{ {sums} __syncthreads(); {uses} }}"
    assert nvrtc.compile_cuda(source, "sm_80").spills > 0
