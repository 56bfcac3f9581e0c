"""Kernels in Python for numba-cuda (NVVM): `python numba_kernels.py OUT_DIR`. Run by make.py; needs no GPU.

Arrays are passed as numba's structs, a parameter per field; there are local arrays, loops with breaks,
complex numbers, and calls of libdevice. (With device functions, this version would ask for a device.)
"""

import math
import re
import sys
from pathlib import Path

import numba
import numba_cuda
from numba import cuda, float32, float64, int32, int64, types, uint8, uint32
from spec import array, launch, output, save, scalar

TARGETS = {80: (8, 0), 90: (9, 0), 100: (10, 0)}
BLOCK = 128


def sum_of_blocks(x, out, n):
    """Each block sums its share: warp shuffles, then shared memory, then one atomic per block."""
    partial = cuda.shared.array(4, float32)
    total = float32(0)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total += x[i]
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    if cuda.laneid == 0:
        partial[cuda.threadIdx.x // 32] = total
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, partial[0] + partial[1] + partial[2] + partial[3])


def divisors(a, b, out, quotient, n):
    """64-bit division and remainder, in loops whose length differs from lane to lane."""
    i = cuda.grid(1)
    if i < n:
        left, right = a[i], b[i]
        while right != 0:
            left, right = right, left % right
        out[i] = left
        quotient[i] = a[i] // b[i] + a[i] % 1000003


def escape_times(out, width, height, limit):
    x, y = cuda.grid(2)
    if x >= width or y >= height:
        return
    c = complex(3.0 * x / width - 2.0, 2.0 * y / height - 1.0)
    z = 0j
    for i in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4.0:
            out[y * width + x] = i
            return
    out[y * width + x] = limit


def median_of_window(x, out, n):
    """The median by insertion sort in a local array with a computed index."""
    i = cuda.grid(1)
    if i >= n:
        return
    window = cuda.local.array(7, float32)
    for k in range(7):
        at = min(max(i + k - 3, 0), n - 1)
        value, place = x[at], k
        while place > 0 and window[place - 1] > value:
            window[place] = window[place - 1]
            place -= 1
        window[place] = value
    out[i] = window[3]


def double_math(x, out, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        out[i] = (
            math.exp(-v * v) * math.cos(v) + math.log(v * v + 1.5) + math.atan2(v, 2.0) + math.pow(1.5, v)
        )


def interpreter(code, x, out, steps):
    """A data-dependent switch inside a loop."""
    i = cuda.grid(1)
    value = x[i]
    for k in range(steps):
        op = code[k]
        if op == 0:
            value += i
        elif op == 1:
            value = value * 3
        elif op == 2:
            value ^= value >> 3
        elif op == 3:
            value = -value
        elif op == 4:
            value -= k
        else:
            value = cuda.popc(uint32(value)) + (value << 2)
    out[i] = value


def tickets(x, best, taken, n):
    """Atomic maximum, and a compare-and-swap loop that counts."""
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.max(best, 0, x[i])
        place, expected, done = x[i] & 3, 0, False
        while not done:  # the word is never read by a plain load: that would be a data race
            old = cuda.atomic.cas(taken, place, expected, expected + 1)
            done = old == expected
            expected = old


def tiled_matmul(a, b, c, n):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 16 + ty, cuda.blockIdx.x * 16 + tx
    total = float32(0)
    for k in range(0, n, 16):
        left[ty, tx] = a[row * n + k + tx]
        right[ty, tx] = b[(k + ty) * n + column]
        cuda.syncthreads()
        for inner in range(16):
            total += left[ty, inner] * right[inner, tx]
        cuda.syncthreads()
    c[row * n + column] = total


def fields(argument: dict) -> list[dict]:
    """The parameters that numba makes of an argument: for a one-dimensional array its struct."""
    if "scalar" in argument:
        return [argument]
    width, count = (
        {"uint8": 1, "int64": 8, "float64": 8}.get(argument["dtype"], 4),
        math.prod(argument["shape"]),
    )
    before = [scalar("", v, "int64") for v in (0, 0, count, width)]
    return [*before, argument, scalar("", count, "int64"), scalar("", width, "int64")]


def cases():
    """(function, signature, arguments, computes, grid, block) of every kernel."""
    n = scalar("n", 500)
    f32, f64, i32, i64 = (t[::1] for t in (float32, float64, int32, int64))
    x = array("x", "float32", 500)
    wide = [
        array(name, "int64", 500, fill=f"below {limit}") for name, limit in (("a", 1 << 60), ("b", 1 << 40))
    ]
    small = array("x", "int32", 256, fill="below 1000")
    return [
        (sum_of_blocks, (f32, f32, int32), [x, output("out", "float32", 1), n], "total",
         [2, 1, 1], [128, 1, 1]),
        (divisors, (i64, i64, i64, i64, int32), [*wide, output("out", "int64", 500),
         output("quotient", "int64", 500), n], "divisors", [4, 1, 1], [128, 1, 1]),
        (escape_times, (i32, int32, int32, int32), [output("out", "int32", 30, 40),
         scalar("width", 40), scalar("height", 30), scalar("limit", 50)], "escape", [3, 2, 1], [16, 16, 1]),
        (median_of_window, (f32, f32, int32), [x, output("out", "float32", 500), n], "median",
         [4, 1, 1], [128, 1, 1]),
        (double_math, (f64, f64, int32), [array("x", "float64", 500), output("out", "float64", 500), n],
         "double_math", [4, 1, 1], [128, 1, 1]),
        (interpreter, (uint8[::1], i32, i32, int32), [array("code", "uint8", 20, fill="below 6"),
         small, output("out", "int32", 256), scalar("steps", 20)], "interpreter", [2, 1, 1], [128, 1, 1]),
        (tickets, (i32, i32, i32, int32), [array("x", "int32", 150, fill="below 1000"),
         output("best", "int32", 1), output("taken", "int32", 4), scalar("n", 150)], "tickets",
         [2, 1, 1], [128, 1, 1]),
        (tiled_matmul, (f32, f32, f32, int32), [array("a", "float32", 32, 32), array("b", "float32", 32, 32),
         output("c", "float32", 32, 32), scalar("n", 32)], "matmul", [2, 2, 1], [16, 16, 1]),
    ]  # fmt: skip


def main(folder: Path) -> None:
    kernels = {}
    version = f"numba-cuda {numba_cuda.__version__}, numba {numba.__version__}"
    for function, signature, args, computes, grid, block in cases():
        parameters = [field for argument in args for field in fields(argument)]
        for arch, cc in TARGETS.items():
            ptx, _ = cuda.compile_ptx(function, types.void(*signature), cc=cc, lineinfo=arch == 90)
            entry = re.search(r"\.entry (\w+)", ptx).group(1)
            spec = launch(version, entry, computes, grid, block, parameters)
            kernels[f"numba_{function.__name__}_sm{arch}"] = ptx, spec
    save(folder, kernels)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
