"""Aligns torch tensors in CPU memory to 512 B, as on a GPU; on the CPU torch asks for only 64 B."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Iterator

from ptxsim.plugins.redirected import redirected

ALIGNMENT = 512  # bytes; that of torch's CUDA allocator

# int posix_memalign(void **place, size_t alignment, size_t size), implemented by memalign (NULL: no memory)
_BEFORE, _AFTER = (
    "57 bf" + struct.pack("<I", ALIGNMENT).hex() +  # push rdi; mov edi, ALIGNMENT
    "48 39 fe  48 0f 47 fe"  # cmp rsi, rdi; cmova rdi, rsi
    "48 89 d6  48 b8",  # mov rsi, rdx; movabs rax, memalign
    "ff d0  5f  48 85 c0  74 06"  # call rax; pop rdi; test rax, rax; je fail
    "48 89 07  31 c0  c3"  # mov [rdi], rax; xor eax, eax; ret
    "b8 0c 00 00 00  c3",  # fail: mov eax, ENOMEM; ret
)  # fmt: skip


@contextlib.contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Inside the block, posix_memalign returns multiples of 512 B. On Linux on x86-64 only."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        yield
        return
    library = ctypes.CDLL(None)
    with redirected(library, {"posix_memalign": ctypes.c_void_p(_code())}):
        yield


@functools.cache
def _code() -> int:
    """The address of the machine code. It is never freed: a thread may still be in it when a block ends."""
    memalign = ctypes.cast(ctypes.CDLL(None).memalign, ctypes.c_void_p).value
    code = bytes.fromhex(_BEFORE) + struct.pack("<Q", memalign) + bytes.fromhex(_AFTER)
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    _PAGES.append(page)
    return ctypes.addressof(ctypes.c_char.from_buffer(page))


_PAGES: list[mmap.mmap] = []
