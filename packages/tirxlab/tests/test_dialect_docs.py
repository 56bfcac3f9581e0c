"""Every name of the language is in the stubs, with a docstring, and the stubs name only what exists."""

import inspect
import re
from pathlib import Path

import pytest
from test_dialect_rows import ROWS

import tirxlab
from tirxlab import dialect
from tirxlab.dialect import ops
from tirxlab.dialect.docs import PARTS, STUBS, documented

ROOT = Path(__file__).resolve().parents[3]
GROUPS = {
    *("Scope", "TileOps", "Tx.ptx.mbarrier", "Tx.ptx.tcgen05", "Tx.ptx.tcgen05.fence", "Tx.ptx.tcgen05.wait"),
    *("Tx.ptx.fence", "Tx.ptx.cp_async.bulk"),
}
ONLY_IN_STUBS = {"Axis", "TxBuffer", "Cuda", "Ptx", "Scope", "TileOps"}  # names for objects that TVM makes
DATA = {"Tx.int32", "Tx.float32"}  # types: their names say it


def used_in_kernels() -> set[str]:
    """Every `Tx.name` in the reference kernels and in the skeleton."""
    files = (ROOT / "instructor/solutions/gemm_kernels.py", ROOT / "gemm_kernels.py")
    texts = [file.read_text(encoding="utf-8") for file in files if file.exists()]
    return {name.rstrip(".") for text in texts for name in re.findall(r"\bTx\.[\w.]+", text)}


def in_the_tables() -> set[str]:
    """The dotted names at the start of the rows of the API tables."""
    found = [
        re.search(r"(Tx|TMABar|TCGen05Bar|MBarrier|PipelineState|ClusterP\w+)[\w.]*", row) for row in ROWS
    ]
    return {match.group().rstrip(".") for match in found if match}


def set_on_tx() -> set[str]:
    return {f"Tx.{name}" for name in vars(dialect.Tx)}


def beside_tx() -> set[str]:
    return set(tirxlab.DIALECT_NAMES)


@pytest.mark.parametrize("names", [used_in_kernels, in_the_tables, set_on_tx, beside_tx])
def test_every_name_is_documented(names):
    assert len(names()) > 10
    assert names() - set(documented()) - DATA == {"PipelineState.stage"} & names()


@pytest.mark.parametrize("name", sorted(set(documented()) - GROUPS))
def test_a_docstring_says_what_it_lowers_to_who_calls_it_and_what_follows(name):
    assert [part for part in PARTS if part not in documented()[name]] == []


def test_groups_have_a_line_each():
    assert [name for name in GROUPS if not documented()[name]] == []


def exists(name: str) -> bool:
    first, *rest = name.split(".")
    target = getattr(dialect, first, None)
    for part in rest:
        target = getattr(target, part, None)
    return target is not None


def test_the_stubs_name_only_what_exists():
    theirs = {name for name in documented() if name.split(".")[0] not in ONLY_IN_STUBS}
    theirs = {re.sub(r"^Pool\b", "Tx.PoolAllocator", name) for name in theirs}
    assert [name for name in sorted(theirs) if not exists(name)] == []


def test_a_name_that_does_not_exist_is_noticed():
    assert not exists("Tx.ptx.tcgen05.alocc") and not exists("TMABar.arive")


def test_help_shows_the_same_text():
    for name in (
        "Tx.copy",
        "Tx.warp",
        "Tx.thread_id",
        "Tx.add",
        "Tx.ptx.tcgen05.commit",
        "Tx.ptx.cp_async.bulk",
    ):
        target = dialect
        for part in name.split("."):
            target = getattr(target, part)
        assert target.__doc__ == documented()[name]


@pytest.mark.parametrize("name", ["copy", "copy_async", "cast", "gemm_async"])
def test_the_options_of_tile_operations_are_those_of_the_stub(name):
    text = (Path(dialect.__file__).parent / "namespace.pyi").read_text(encoding="utf-8")
    stub = re.search(rf"def {name}\((.*?)\) ->", text, re.S).group(1)
    for parameter in inspect.signature(getattr(ops, name)).parameters:
        if parameter != "options":
            assert re.search(rf"\b{parameter}\b", stub), parameter


def test_the_front_door_exports_the_same_names():
    text = Path(tirxlab.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert set(re.findall(r"(\w+) as \1", text)) == set(tirxlab.DIALECT_NAMES)


def test_the_stubs_are_where_editors_look():
    assert all((Path(dialect.__file__).parent / name).exists() for name in STUBS)
