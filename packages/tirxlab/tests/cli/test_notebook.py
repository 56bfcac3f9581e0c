"""The notebook of step 1 runs from its first cell to its last on a CPU, in this Python."""

import sys

import pytest

from tirxlab.cli.common import ROOT

NOTEBOOK = ROOT / "notebooks" / "step1.ipynb"


@pytest.mark.timeout(900)
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `notebook`")
    client = pytest.importorskip("nbclient", reason="needs the extra `notebook`")
    pytest.importorskip("ipykernel", reason="needs the extra `notebook`")
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    assert not any(cell.get("outputs") for cell in book.cells)
    made = client.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    made.execute()
    said = "".join(
        output.get("text", "")
        for cell in book.cells
        for output in cell.get("outputs", [])
        if "text" in output
    )
    assert "announced 16384 B: clean, all rows copied: True" in said
    assert "error: tx-count: loaded[0]" in said and "step 1, hint 1 of 3 (place)" in said
    assert sys.version_info >= (3, 10)
