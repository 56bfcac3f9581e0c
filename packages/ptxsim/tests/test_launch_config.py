"""The request for a launch: extents, launches that no chip can run, options of another kind."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.launch_config import LaunchConfig, RunConfig, extents

GOOD = {"grid": 4, "block": 32, "cluster": 2, "shared_bytes": 0}
WRONG = {  # change of a valid launch -> part of the message
    "block of 2048": ({"block": 2048}, "a CTA has at most 1024"),
    "odd grid": ({"grid": 3}, "not a multiple of cluster"),
    "cluster of 32": ({"grid": 32, "cluster": 32}, "at most 16"),
    "too much shared memory": ({"shared_bytes": 1 << 20}, "B of dynamic shared memory"),
    "four extents": ({"grid": (2, 1, 1, 1)}, "up to three positive extents"),
    "grid of 2^31": ({"grid": 2**31}, "has an extent above"),
    "65,536 rows of CTAs": ({"grid": (2, 65536)}, "has an extent above"),
    "block 65 deep": ({"block": (1, 1, 65)}, "has an extent above"),
    "no block": ({"block": 0}, "up to three positive extents"),
    "no instructions": ({"max_instructions": 0}, "max_instructions is a positive number"),
    "half a block": ({"block": 1.5}, "up to three positive extents"),
}
ANOTHER_KIND = {  # option of launch -> values that it refuses by name
    "shared_bytes": ["1k", 1.5], "checks": ["race"], "trace": ["t.json", ptxsim.Costs], "jobs": [0, "2"],
    "clusters": [0, -1], "first": ["0"], "cooperative": ["no"], "source": [5], "hints": [{"race": "wait"}],
    "names": ["a", [("a", "f32")], None], "arg_names": ["x", [1]], "args": [None, np.ones(1), {"p": 1}],
    "memory": [[1], {"a": np.ones(1)}, {-8: np.ones(1)}, {8: 5}],
}  # fmt: skip


@pytest.mark.parametrize("option", ANOTHER_KIND)
def test_an_option_of_another_kind(option):
    module = ptxsim.load(f"{HEAD}.visible .entry k() {{ ret; }}")
    for value in ANOTHER_KIND[option]:
        with pytest.raises(ValueError, match=f"^{option} is "):
            module.launch("k", **{option: value})


def test_a_read_only_array_is_read_but_not_written():
    code = "ld.param.u64 %p, [p]; ld.global.b32 %r, [%p]; @{} st.global.b32 [%p], 7; ret;"
    text = f"{HEAD}.visible .entry k(.param .u64 p, .param .u32 w) {{ .reg .pred %q; .reg .b32 %r; "
    text += ".reg .b64 %p; ld.param.u32 %r, [w]; setp.ne.u32 %q, %r, 0; " + code.format("%q") + "}"
    array = np.frombuffer(bytes(4), np.uint32)
    assert ptxsim.load(text).launch("k", args=[array, 0]).verdict == "clean"
    with pytest.raises(ValueError, match="argument 0 is read-only, but the kernel writes to it"):
        ptxsim.load(text).launch("k", args=[array, 1])
    assert array == 0


def test_a_read_only_view_of_an_array_that_the_kernel_writes_is_that_array():
    text = f"{HEAD}.visible .entry k(.param .u64 p, .param .u64 q) {{ .reg .b64 %p; ld.param.u64 %p, [p]; "
    array = np.zeros(4, np.uint32)
    view = array.view()
    view.flags.writeable = False
    module = ptxsim.load(text + "st.global.b32 [%p], 7; ret; }")
    assert module.launch("k", args=(a for a in (array, view))).verdict == "clean" and array[0] == 7


def test_read_only_memory_at_an_address_is_not_written():
    text = f"{HEAD}.visible .entry k(.param .u64 p) {{ .reg .b64 %p; ld.param.u64 %p, [p]; "
    memory = {1 << 40: ("table", np.frombuffer(bytes(16), np.uint32))}
    with pytest.raises(ValueError, match="table is read-only"):
        ptxsim.load(text + "st.global.b32 [%p], 7; ret; }").launch("k", args=[1 << 40], memory=memory)


@pytest.mark.parametrize("text", ["add.ptx", b"\x7fELF\2", None, 5])
def test_what_is_no_text(text):
    with pytest.raises(ValueError, match="load takes"):
        ptxsim.load(text)


def test_a_good_launch():
    config = LaunchConfig.of(**GOOD)
    assert (config.grid, config.threads, config.ctas_per_cluster) == ((4, 1, 1), 32, 2)
    assert config.clusters == (2, 1, 1)


@pytest.mark.parametrize("changed, words", WRONG.values(), ids=WRONG)
def test_what_no_chip_can_launch(changed, words):
    with pytest.raises(ValueError, match=words):
        LaunchConfig.of(**GOOD | changed)


@pytest.mark.parametrize(
    "shape, wanted", [(2, (2, 1, 1)), ((2, 3), (2, 3, 1)), (np.array([1, 2, 3]), (1, 2, 3))]
)
def test_extents(shape, wanted):
    assert extents(shape) == wanted


@pytest.mark.parametrize("config, field", [(LaunchConfig.of(**GOOD), "grid"), (RunConfig(), "order")])
def test_configs_never_change(config, field):
    with pytest.raises(FrozenInstanceError):
        setattr(config, field, None)
    assert replace(config, **{field: getattr(config, field)}) == config


@pytest.mark.parametrize("given, wanted", [(1, 2), (2, 2), (4, 4)])
def test_the_kernel_may_ask_for_a_cluster(given, wanted):
    text = f"{HEAD}.visible .entry k() .reqnctapercluster 2, 1, 1 {{ ret; }}"
    launch = ptxsim.load(text).prepare("k", 4, 32, given, 0, [])
    assert launch.config.cluster == (wanted, 1, 1)
