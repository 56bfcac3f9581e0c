"""The ten reference kernels compile without spills, and the CUDA shows each step's technique."""

import csv
import difflib
import inspect
import re
from pathlib import Path

import pytest

from instructor.solutions import gemm_kernels
from tirxlab.toolchain.build import build

ROOT = Path(gemm_kernels.__file__).parents[2]
# Uneven: not square, K tiles odd; from step 6 on, several tiles for most CTAs.
UNEVEN = {
    **{step: (384, 640, 192) for step in (3, 4, 5)},
    **{step: (2304, 2432, 192) for step in (6, 7, 8)},
    **{step: (6144, 3328, 192) for step in (9, 10)},
}
ONE_K_TILE = {2: (128, 128, 64), 5: (128, 128, 64), 6: (128, 128, 64), 8: (128, 128, 64), 10: (512, 256, 64)}


def _csv_sizes() -> list[tuple[int, int, int, int]]:
    lines = (
        (ROOT / "packages" / "tirxlab" / "src" / "tirxlab" / "data" / "b200_reference_ms.csv")
        .read_text()
        .splitlines()
    )
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [tuple(int(row[key]) for key in ("step", "M", "N", "K")) for row in rows]


def _kernel(step: int, M: int, N: int, K: int):
    return getattr(gemm_kernels, f"hgemm_v{step}")(M, N, K)


def _small(step: int) -> tuple[int, int, int]:
    """The first csv size of the step with more than one K tile (step 1 has only one)."""
    return next(size for s, *size in _csv_sizes() if s == step and (step == 1 or size[2] > 64))


def _sizes() -> list:
    """Of the csv sizes of a step the first and the last always run; those between differ only in numbers."""
    steps = [step for step, *_ in _csv_sizes()]
    between = [a == b == c for a, b, c in zip([0, *steps], steps, [*steps[1:], 0], strict=False)]
    slow = [[pytest.mark.slow] * inner for inner in between]
    more = [(step, *size) for table in (UNEVEN, ONE_K_TILE) for step, size in table.items()]
    return [*(pytest.param(*size, marks=m) for size, m in zip(_csv_sizes(), slow, strict=True)), *more]


@pytest.mark.parametrize("step,M,N,K", _sizes())
def test_compiles_without_spills(step, M, N, K):
    artifact = build(_kernel(step, M, N, K))
    assert artifact.spills == 0 and artifact.stack == 0
    assert [(b.name, b.role, b.shape) for b in artifact.buffers] == [
        ("A", "in", (M, K)),
        ("B", "in", (N, K)),
        ("D", "out", (M, N)),
    ]


# step -> (grid, block, cluster) at its smallest csv size
LAUNCH = {
    1: ((1, 1, 1), 128, 1),
    2: ((1, 1, 1), 128, 1),
    3: ((2, 2, 1), 128, 1),
    4: ((2, 2, 1), 128, 1),
    5: ((4, 4, 1), 128, 1),
    6: ((148, 1, 1), 128, 1),
    7: ((148, 1, 1), 256, 1),
    8: ((148, 1, 1), 256, 1),
    9: ((148, 1, 1), 256, 2),
    10: ((148, 1, 1), 384, 2),
}


@pytest.mark.parametrize("step", LAUNCH)
def test_launch_shape(step):
    artifact = build(_kernel(step, *_small(step)))
    assert (artifact.grid, artifact.block, artifact.cluster) == (
        LAUNCH[step][0],
        (LAUNCH[step][1], 1, 1),
        (LAUNCH[step][2], 1, 1),
    )
    assert artifact.shared_bytes <= 227 * 1024


# step -> names in shared memory with their shapes
NAMES = {
    1: {"mma_bar": (1,), "Asmem": (128, 64), "Bsmem": (128, 64)},
    4: {"tma_bar": (1,), "mma_bar": (1,), "Dsmem": (128, 128)},
    5: {"tma_bar": (2,), "Asmem": (2, 128, 64), "Bsmem": (2, 128, 64)},
    7: {"tma2mma": (2,), "mma2tma": (2,), "mma2ld": (1,), "ld2mma": (1,), "Dsmem": (128, 64)},
    8: {"tma2mma": (4,), "mma2tma": (4,), "mma2ld": (1,), "ld2mma": (1,)},
    9: {"tma2mma": (4,), "Asmem": (4, 128, 64), "Bsmem": (4, 128, 64)},
    10: {"mma2ld": (2,), "ld2mma": (2,), "Asmem": (4, 2, 128, 64), "Dsmem": (2, 128, 64)},
}


@pytest.mark.parametrize("step", NAMES)
def test_shared_memory(step):
    names = {n.name: tuple(n.shape) for n in build(_kernel(step, *_small(step))).names}
    assert NAMES[step].items() <= names.items()


# step -> (pattern in the device code, how often)
CODE = {
    1: [(r"tcgen05_mma_cta_1", 4), (r"cp_async_bulk_tensor", 0), (r"fence_proxy_async_shared_cta\(\)", 2)],
    2: [(r"for \(int k = 0; ", 1), (r"phase_mma_ptr\[0\] \^ 1", 1), (r"cp_async_bulk_tensor", 0)],
    3: [(r"blockIdx\.y", None), (r"cp_async_bulk_tensor", 0)],
    4: [(r"cp_async_bulk_tensor_g2s", 2), (r"arrive_expect_tx\w*\(.*, 32768\)", 1), (r"shared_to_global", 1)],
    5: [(r"arrive_expect_tx\w*\(.*, 32768\)", 3)],
    6: [(r"while \(1\)", 1), (r"linear_idx_ptr\[0\] \+ 148", 1)],
    7: [(r"while \(1\)", 3), (r"tcgen05_commit_cta_group_1\(", 2), (r"\[\d+\]\)\), 128\)", 1)],
    8: [(r"while \(1\)", 3), (r"stage_ptr\[0\] == 4", 2)],
    9: [
        (r"tcgen05_mma_cta_2_kind_f16", 4),
        (r"commit_cta_group_2_multicast\(.*, 3\)", 2),
        (r"expect_tx\w*\(.*, 65536", 1),
        (r"linear_idx_ptr\[0\] \+ 74", 3),
        (r"cluster_sync\(\)", 2),
        (r"\[\d+\]\)\), 256\)", 1),
    ],
    10: [(r"expect_tx\w*\(.*, 98304", 1), (r"mbarrier_init\(.*, 2\)", 4), (r"mbarrier_init\(.*, 256\)", 2)],
}


@pytest.mark.parametrize("step", CODE)
def test_technique(step):
    code = build(_kernel(step, *_small(step))).cuda.split(" kernel_kernel(")[-1]
    for pattern, count in CODE[step]:
        found = len(re.findall(pattern, code))
        assert found == count if count is not None else found, f"/{pattern}/ occurs {found} times"


@pytest.mark.parametrize("step", range(1, 11))
def test_tensor_memory_is_freed(step):
    code = build(_kernel(step, *_small(step))).cuda.split(" kernel_kernel(")[-1]
    order = [
        code.index(f"tcgen05_{what}_cta_group") for what in ("alloc", "relinquish_alloc_permit", "dealloc")
    ]
    assert order == sorted(order)


MISFITS = [
    (1, (256, 128, 64), "M must be 128 (got 256)"),
    (1, (128, 128, 128), "K must be 64 (got 128)"),
    (2, (128, 128, 100), "K must be a multiple of 64 (got 100)"),
    (2, (128, 256, 64), "N must be 128 (got 256)"),
    (3, (100, 128, 64), "M must be a multiple of 128 (got 100)"),
    (4, (128, 0, 64), "N must be a multiple of 128 (got 0)"),
    (5, (128, 128, 64.0), "K must be a multiple of 64 (got 64.0)"),
    (8, (-128, 128, 64), "M must be a multiple of 128 (got -128)"),
    (9, (384, 256, 64), "M must be a multiple of 256 (got 384)"),
    (9, (256, 384, 64), "N must be a multiple of 256 (got 384)"),
    (10, (768, 256, 64), "M must be a multiple of 512 (got 768)"),
]


@pytest.mark.parametrize("step,size,rule", MISFITS)
def test_a_shape_that_does_not_fit(step, size, rule):
    with pytest.raises(ValueError, match=re.escape(rule)):
        _kernel(step, *size)


def _code(step: int) -> list[str]:
    """The step's lines, without the markers from which the students' skeleton is generated."""
    lines = inspect.getsource(getattr(gemm_kernels, f"hgemm_v{step}")).splitlines()
    return [line for line in lines if not line.strip().startswith(("# TODO[", "# |"))]


def test_steps_differ_little():
    """At most 160 changed lines from one step to the next."""
    texts = [_code(step) for step in range(1, 11)]
    for step, (before, after) in enumerate(zip(texts, texts[1:], strict=False), start=2):
        changed = [
            d
            for d in difflib.unified_diff(before, after, n=0)
            if d[0] in "+-" and d[:3] not in ("+++", "---")
        ]
        assert len(changed) <= 160, f"step {step} changes {len(changed)} lines"
