"""Names of C++ as findings have them."""

import pytest

from ptxsim.report.names import brief, readable

LONG = "void lib::kernel<lib::Gemm<lib::Tile<int, 128>, float>, 3>(lib::Params<float, lib::Tile<int, 128> >)"


@pytest.mark.parametrize(
    ("most", "text"),
    [
        (200, LONG),
        (90, "void lib::kernel<lib::Gemm<lib::Tile<..>, float>, 3>(lib::Params<float, lib::Tile<..> >)"),
        (80, "void lib::kernel<lib::Gemm<..>, 3>(lib::Params<..>)"),
        (50, "void lib::kernel<..>(..)"),
        (12, "void lib::.."),
    ],
)
def test_inner_brackets_go_first(most, text):
    assert brief(LONG, most) == text and len(text) <= most


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bool operator< <long_name>(long_name const&)", "bool operator< <..>(..)"),
        ("int operator()(long_name_of_a_type) const", "int operator()(..) const"),
        ("auto make<long_name_of_a_type>() -> other", "auto make<..>() -> other"),
    ],
)
def test_operators_are_no_brackets(text, told):
    assert brief(text, 27) == told


def test_a_mangled_name():
    assert brief("_Z4racyPKfPf") == readable("_Z4racyPKfPf") == "racy(float const*, float*)"
