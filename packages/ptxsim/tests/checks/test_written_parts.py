"""A read of unwritten memory is reported with the parts of its buffer that are written."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.checks.lifecycle.written_parts import told_of

STORED = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %d<2>;
    .shared .align 16 .b8 parts[512];
    mov.u32 %r0, parts; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; add.u32 %r2, %r0, %r2;
    st.shared.u32 [%r2 + WRITTEN], %r1;
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    ld.param.u64 %d0, [out];
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [parts + 128], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


def said(written: int) -> str:
    text = STORED.replace("WRITTEN", str(written))
    result = ptxsim.load(text).launch("k", grid=1, block=32, args=[np.zeros(32, np.uint32)])
    return "\n".join(finding.message for finding in result.findings if finding.kind == "uninitialized")


def test_a_part_that_is_written_is_no_finding():
    assert said(128) == ""


@pytest.mark.parametrize("at", [0, 256])
def test_what_was_written_instead_is_told(at):
    assert f"of parts, bytes {at} to {at + 127} are written so far" in said(at)


@pytest.mark.parametrize(
    "written, told",
    [
        ([], "; nothing of buf is written so far"),
        ([(0, 4)], "; of buf, bytes 0 to 3 are written so far"),
        ([(4, 8), (20, 24), (36, 40)], "; of buf, 4 of every 16 bytes from 4 on are written so far"),
        ([(0, 4), (5, 6)], "; of buf, bytes 0 to 3 and 5 to 5 are written so far"),
        (
            [(0, 1), (2, 9), (12, 14), (20, 40)],
            "; of buf, bytes 0 to 0 and 2 to 8 and 12 to 13, among others, are written so far",
        ),
    ],
)
def test_parts_in_step_are_told_by_their_distance(written, told):
    flags = np.zeros(40, np.uint8)
    for first, end in written:
        flags[first:end] = 1
    assert told_of(flags, "buf", "bytes") == told
