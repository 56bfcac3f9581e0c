"""C++ names as findings show them, and the name of an address past the end of shared memory."""

import pytest

import ptxsim
from ptxsim.report.names import brief, brief_text, readable

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


@pytest.mark.parametrize(
    "text, told",
    [
        ("_INTERNAL_8596e390_18_tw_cu_03b8c487::cuda::ptx::__4::arrive(int)", "cuda::ptx::arrive(int)"),
        ("lib::__4ever::wait(lib::__internal::bar)", "lib::__4ever::wait(lib::__internal::bar)"),
    ],
)
def test_namespaces_that_the_compiler_added_are_left_out(text, told):
    assert brief(text) == told


@pytest.mark.parametrize(("at", "found"), [("8", None), ("24", "past-shared")])
def test_an_address_past_the_end_is_told_by_the_last_buffer(at, found):
    text = """.version 8.8\n.target sm_100a\n.address_size 64
.extern .shared .align 8 .b8 bars[];
.visible .entry k() { .reg .b32 %a; .reg .b64 %s; mov.u32 %a, bars;
  mbarrier.init.shared.b64 [%a+8], 1; mbarrier.arrive.shared.b64 %s, [%a+AT]; ret; }"""
    run = ptxsim.load(text.replace("AT", at)).launch(
        "k", block=1, shared_bytes=16, names=[("bars", "uint64", 0, 16)]
    )
    first = next(iter(run.findings), None)
    assert (first.evidence["cause"] if first else None) == found
    assert first is None or "8 B past the end of bars" in first.message


@pytest.mark.parametrize(
    "count, shown", [(8, ", ".join(f"%f{i}" for i in range(8))), (64, "%f0, %f1, .. %f63")]
)
def test_of_a_long_list_of_registers_the_ends_are_shown(count, shown):
    text = "wgmma.mma_async.sync.aligned {{{}}}, %rd1, %rd2, p, 1, 1;"
    assert brief_text(text.format(", ".join(f"%f{i}" for i in range(count)))) == text.format(shown)
