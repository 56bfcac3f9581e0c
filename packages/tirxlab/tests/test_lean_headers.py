"""The stand-ins for TVM's headers change only the time: a kernel that needs the real ones gets them."""

import re

import pytest

from tirxlab.toolchain import lean_headers, nvrtc

PRELUDE = "".join(f"#include <{name}>\n" for name in lean_headers.HEADERS)
KERNEL = 'extern "C" __global__ void k(int *out) {{ out[threadIdx.x] = {}; }}'


def body(ptx: str) -> str:
    """The PTX from the kernel's name on, with registers without their numbers."""
    return re.sub(r"%[a-z]+\d+|\$L__BB\d+_\d+", "%", ptx[ptx.index(".entry k(") :])


_TYPES = [f"cuda::std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize(
    "value",
    [
        "cooperative_groups::this_thread_block().thread_rank()",
        " + ".join(f"sizeof({name}) * {10**at}" for at, name in enumerate(_TYPES)),
    ],
)
def test_a_stand_in_means_what_the_header_means(value):
    source = PRELUDE + KERNEL.format(value)
    lean = nvrtc._compile(source, "sm_100a", "k", lean_headers.HEADERS)
    real = nvrtc._compile(source, "sm_100a", "k", {})
    assert sorted(body(lean.ptx).splitlines()) == sorted(body(real.ptx).splitlines())
    assert (lean.registers, lean.stack) == (real.registers, real.stack)
    assert len(lean.ptx) < 3000 < len(real.ptx) or "rank" not in value


@pytest.mark.parametrize(
    "value, constant",
    [
        ("cuda::std::is_same_v<int, int> ? 41 : 42", 41),
        ("cuda::std::is_integral<float>::value ? 41 : 42", 42),
        ("cuda::std::is_unsigned<unsigned>::value ? 41 : 42", 41),
        ("cuda::std::conditional<true, char, int>::type(300) + 0", 44),
        ("cooperative_groups::this_thread_block().size() > 2000 ? 41 : 42", None),
    ],
)
def test_what_needs_a_real_header_gets_it(value, constant):
    source = PRELUDE + KERNEL.format(value)
    with pytest.raises(nvrtc.CompileError):
        nvrtc._compile(source, "sm_100a", "k", lean_headers.HEADERS)
    ptx = nvrtc.compile_cuda(source, "sm_100a").ptx
    assert constant is None or re.search(rf"\b{constant};", body(ptx))


def test_an_error_is_told_by_the_real_headers():
    source = PRELUDE + KERNEL.format("cuda::std::no_such_thing")
    with pytest.raises(nvrtc.CompileError) as told:
        nvrtc.compile_cuda(source, "sm_100a")
    assert told.value.errors[0][0] == len(lean_headers.HEADERS) + 1


def test_the_headers_are_part_of_the_cache_key():
    assert nvrtc.SETTINGS[:-1] == nvrtc.FLAGS and len(nvrtc.SETTINGS[-1]) == 16
