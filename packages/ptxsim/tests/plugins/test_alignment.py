"""Torch tensors start at the alignment that they would have on a GPU."""

import ctypes

import pytest

from ptxsim.plugins.alignment import ALIGNMENT, as_on_a_gpu

_LIBRARY = ctypes.CDLL(None)
_ENOMEM = 12


def allocate(alignment: int, size: int) -> tuple[int, int]:
    """(return value of posix_memalign, the address)"""
    place = ctypes.c_void_p()
    answer = _LIBRARY.posix_memalign(ctypes.byref(place), ctypes.c_size_t(alignment), ctypes.c_size_t(size))
    if not answer:
        ctypes.memset(place, 1, size)
        _LIBRARY.free(place)
    return answer, place.value or 0


@pytest.mark.parametrize("alignment, least", [(64, ALIGNMENT), (4096, 4096)])
def test_memory_is_aligned_as_on_a_gpu_inside_the_block_only(alignment, least):
    with as_on_a_gpu(), as_on_a_gpu():  # a block inside another
        kept = [allocate(alignment, 40 + 16 * i) for i in range(50)]
    assert all(answer == 0 and address and address % least == 0 for answer, address in kept)
    assert {allocate(64, 40 + 16 * i)[1] % ALIGNMENT for i in range(50)} != {0}


def test_what_does_not_fit_is_refused_as_ever():
    with as_on_a_gpu():
        assert allocate(64, 1 << 62)[0] == _ENOMEM


def test_tensors_are_aligned_where_kernels_of_python_run():
    torch = pytest.importorskip("torch", reason="the extra [triton] is not installed")
    pytest.importorskip("triton", reason="the extra [triton] is not installed")
    import ptxsim

    with ptxsim.triton():
        made = [torch.ones(100 + i, device="cuda") for i in range(50)]
    assert all(tensor.data_ptr() % ALIGNMENT == 0 for tensor in made)
