"""A copy reads its tensor map until it has read its source: a thread that
writes the map waits (9.7.9.25.4).
"""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim
from ptxsim.units.tensormap import encoded

DATA, MAP = 0x7200_0000_0000, 0x7300_0000_0000  # their addresses
ORDERS = ("program", "adverse", 7)
START = """.visible .entry k(.param .u64 pmap) {
.reg .b32 %t, %tile, %bar, %own; .reg .b64 %m; .reg .pred %lead, %second, %done;
.shared .align 128 .b8 tile[128]; .shared .align 8 .b8 full[8];
ld.param.u64 %m, [pmap]; mov.u32 %t, %tid.x; mov.u32 %tile, tile; mov.u32 %bar, full;
setp.eq.u32 %lead, %t, 0; setp.eq.u32 %second, %t, 33;
@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster;
shl.b32 %own, %t, 2; and.b32 %own, %own, 124; add.u32 %own, %tile, %own; st.shared.u32 [%own], 1;
fence.proxy.async.shared::cta; bar.sync 0;
"""
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
LOAD = f"""@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;
@%lead {COPY} [%tile], [%m, {{0, 0}}], [%bar];"""
STORE = """@%lead cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {0, 0}], [%tile];
@%lead cp.async.bulk.commit_group;"""
LOADED = "LOADED: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra LOADED;"
GROUP = "@%lead cp.async.bulk.wait_group{} {};"
WAITS = {  # the copy, the wait before the write, the wait at the end; whether it is in time
    "loaded": (LOAD, LOADED, "", True),
    "not loaded": (LOAD, "", LOADED, False),
    "stored": (STORE, GROUP.format("", 0), "", True),
    "source read": (STORE, GROUP.format(".read", 0), GROUP.format("", 0), True),
    "one group may be open": (STORE, GROUP.format("", 1), GROUP.format("", 0), False),
    "not stored": (STORE, "", GROUP.format("", 0), False),
}


def launch(wait: str, writer: str, order) -> ptxsim.Result:
    copy, before, after, _ = WAITS[wait]
    write = f"bar.sync 0;\n@%{writer} st.global.u32 [%m+120], 1;"  # a word that no map uses here
    data = np.zeros((4, 16), np.uint32)
    tmap = ptxsim.TensorMap(data, box=(8, 4))
    raw = np.frombuffer(encoded(tmap, DATA), np.uint8).copy()
    text = f"{HEAD}{START}{copy}\n{before}\n{write}\n{after}\nret;\n}}"
    return ptxsim.load(text).launch("k", block=64, args=[MAP], memory={DATA: data, MAP: raw}, order=order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("writer", ["lead", "second"])
@pytest.mark.parametrize("wait", WAITS)
def test_a_map_is_written_after_copies_have_read_it(wait, writer, order):
    result = launch(wait, writer, order)
    if WAITS[wait][-1]:
        assert result.verdict == "clean", result.findings
    else:
        assert [(f.kind, f.severity) for f in result.findings] == [("race", "error")]
        assert "of its tensor map" in result.findings[0].message


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("barrier", "right"), [("bar.sync 0;", True), ("", False)])
def test_a_copy_reads_its_map_after_who_wrote_it(barrier, right, order):
    write = f"@%second st.global.u32 [%m+120], 1; fence.proxy.tensormap::generic.release.gpu;\n{barrier}"
    data = np.zeros((4, 16), np.uint32)
    raw = np.frombuffer(encoded(ptxsim.TensorMap(data, box=(8, 4)), DATA), np.uint8).copy()
    text = f"{HEAD}{START}{write}\n{LOAD}\n{LOADED}\nret;\n}}"
    result = ptxsim.load(text).launch("k", block=64, args=[MAP], memory={DATA: data, MAP: raw}, order=order)
    assert (result.verdict == "clean") is right, result.findings
