"""Commands that read and write files: handin, reset, port; and the text model of a kernels file."""

import json
import tarfile

import pytest

from tirxlab.cli import app
from tirxlab.cli.common import REFERENCE
from tirxlab.porting import port
from tirxlab.steps import STEPS, StepError, is_untouched, read_skeleton, sections


@pytest.fixture
def mine(tmp_path):
    """A student's file: the skeleton with step 2 begun."""
    file = tmp_path / "gemm_kernels.py"
    parts = sections(read_skeleton())
    parts[2] = parts[2].replace("# TODO: ", "# done: ")
    file.write_text("".join(parts.values()))
    return file


def test_sections_join_to_the_file_and_hold_one_step_each():
    text = REFERENCE.read_text()
    parts = sections(text)
    assert "".join(parts.values()) == text
    assert sorted(parts) == [0, *STEPS]
    assert all(parts[step].startswith(f"def hgemm_v{step}(") for step in STEPS)


def test_untouched_means_the_text_of_the_skeleton(mine):
    text = mine.read_text()
    assert [step for step in STEPS if not is_untouched(text, step)] == [2]
    assert is_untouched(text.replace("\n\n", "\n\n   \n"), 1)
    assert not any(is_untouched(REFERENCE.read_text(), step) for step in STEPS)


def test_sections_refuse_a_step_that_is_none():
    with pytest.raises(StepError, match="hgemm_v11 is not one of the ten steps"):
        sections("def hgemm_v11(M, N, K):\n")


def test_handin_holds_exactly_the_file(mine, tmp_path, capsys):
    target = tmp_path / "handin.tar"
    assert app.main(["handin", "--kernels", str(mine), "--output", str(target)]) == 0
    with tarfile.open(target) as tar:
        (member,) = tar.getmembers()
        assert member.name == "gemm_kernels.py" and member.isfile() and member.mode == 0o644
        assert tar.extractfile(member).read() == mine.read_bytes()
    out = capsys.readouterr().out
    assert "step  1    5 points  not implemented yet" in out
    assert "step  2    5 points  written" in out
    assert "carry 5 of 100 points" in out


def test_handin_packs_a_broken_file_too_and_warns(mine, tmp_path, capsys):
    mine.write_text(mine.read_text() + "\n(")
    target = tmp_path / "handin.tar"
    assert app.main(["handin", "--kernels", str(mine), "--output", str(target), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert "gemm_kernels.py:" in said["problem"] and "never closed" in said["problem"]
    assert {row["state"] for row in said["steps"]} == {"cannot be read"}
    with tarfile.open(target) as tar:
        assert tar.extractfile("gemm_kernels.py").read() == mine.read_bytes()


def test_reset_changes_one_step_and_keeps_a_copy(mine):
    before = mine.read_text()
    mine.write_text(before.replace("def hgemm_v5", "# my note\n\n\ndef hgemm_v5"))
    mixed = mine.read_text()
    assert app.main(["reset", "2", "--kernels", str(mine)]) == 0
    assert is_untouched(mine.read_text(), 2)
    assert "# my note" in mine.read_text()
    assert mine.with_name("gemm_kernels.py.bak").read_text() == mixed
    assert app.main(["reset", "4", "--kernels", str(mine)]) == 0  # the note is before step 5
    assert mine.read_text() == read_skeleton()
    assert mine.with_name("gemm_kernels.py.bak2").exists()


@pytest.mark.parametrize("gone", [(1,), (3,), (10,), (4, 5), (3, 9)])
def test_reset_brings_back_steps_that_were_deleted(mine, gone):
    mine.write_text("".join(text for step, text in sections(mine.read_text()).items() if step not in gone))
    assert app.main(["reset", ",".join(map(str, gone)), "--kernels", str(mine)]) == 0
    assert "# done: " in mine.read_text()  # existing steps are unchanged
    assert app.main(["reset", "2", "--kernels", str(mine)]) == 0
    assert mine.read_text() == read_skeleton()


def test_reset_of_an_untouched_step_writes_nothing(mine, capsys):
    assert app.main(["reset", "1", "--kernels", str(mine)]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert not mine.with_name("gemm_kernels.py.bak").exists()


def test_reset_works_on_a_file_that_does_not_parse(mine):
    mine.write_text(mine.read_text().replace("# done: ", "((( "))
    assert app.main(["reset", "2", "--kernels", str(mine)]) == 0
    assert mine.read_text() == read_skeleton()


@pytest.mark.parametrize(
    "old, new",
    [
        ("from tvm.script import tirx as Tx", "from tirxlab import Tx"),
        ("from tvm.script import tirx as T", "from tirxlab import Tx as T"),
        ("from tvm_tirx.tirx import script as Tx", "from tirxlab import Tx"),
        ("from tvm_tirx.backend.cuda.lang import TCGen05Bar", "from tirxlab import TCGen05Bar"),
        (
            "from tvm.tirx.layout import (TileLayout, tid_in_wg as axis_tid_in_wg,\n  TLane, S)  # note",
            "from tirxlab import TileLayout, axis_tid_in_wg, TLane, S  # note",
        ),
        ("from tvm.tirx.pipeline import TMABar; x = 1", "from tirxlab import TMABar; x = 1"),
        ("x = 1; from tvm.tirx.pipeline import TMABar", "x = 1; from tirxlab import TMABar"),
        (
            "from tvm.script import tirx as T; from tvm import tirx",
            "from tirxlab import Tx as T; from tirxlab import Tx as tirx",
        ),
        ("def f():\n    from tvm.a import MBarrier", "def f():\n    from tirxlab import MBarrier"),
        ("import numpy\nfrom torch import nn", "import numpy\nfrom torch import nn"),
    ],
)
def test_port_rewrites_the_import_and_nothing_else(old, new):
    assert port(old + "\n# é\n") == (new + "\n# é\n", [])


def test_port_of_a_file_without_such_imports_says_so(mine, capsys):
    assert app.main(["port", str(mine), "--diff"]) == 0
    assert capsys.readouterr().out == "gemm_kernels.py: nothing to rewrite\n"


def test_port_keeps_and_names_what_has_no_counterpart():
    text, remarks = port("import tvm\nfrom tvm.tirx.x import bench, TMABar\n")
    assert text == "import tvm\nfrom tirxlab import TMABar\nfrom tvm.tirx.x import bench\n"
    assert [remark.split(":")[0] for remark in remarks] == ["1", "2"]
    assert "bench of tvm.tirx.x has no counterpart" in remarks[1]


def test_ported_reference_builds(tmp_path, capsys):
    """A file with the preview wheel's import lines goes through the command, up to the built kernel."""
    text = REFERENCE.read_text()
    begin, end = text.index("from tirxlab import ("), text.index("\n)\n") + 3
    wheel = (
        "from tvm.script import tirx as Tx\n"
        "from tvm.tirx.layout import TileLayout, tid_in_wg as axis_tid_in_wg, TLane, TCol, S\n"
        "from tvm.tirx.pipeline import PipelineState, MBarrier, TMABar, TCGen05Bar\n"
        "from tvm.tirx.tile_scheduler import ClusterPersistentScheduler2D\n"
        "from tvm.tirx.common import tma_shared_layout, SwizzleMode\n"
    )
    file = tmp_path / "wheel.py"
    file.write_text(text[:begin] + wheel + text[end:])
    assert app.main(["port", str(file)]) == 0
    assert "tvm" not in file.read_text()
    assert app.main(["inspect", "1", "--kernels", str(file), "--as", "regs"]) == 0
    assert "spills                 0 B" in capsys.readouterr().out
