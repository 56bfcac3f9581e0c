"""Copies with their sides exchanged: which findings are related."""

from types import SimpleNamespace

import pytest

from ptxsim.checks.diagnosis import exchanged_copies


def _finding(severity: str, ptx_line: int = 7, **evidence) -> SimpleNamespace:
    where = {"line": 3, "ptx_line": ptx_line}
    return SimpleNamespace(kind="uninitialized", severity=severity, where=where, evidence=evidence)


def test_findings_of_no_buffer_are_left_alone():
    """Output that nobody wrote, and local memory that nobody set: neither is a copy."""
    output, local = _finding("error"), _finding("review", cause="unwritten-local")
    exchanged_copies.exchanged_copies(None, SimpleNamespace(by_identity={1: output, 2: local}))
    assert local.severity == "review"


@pytest.mark.parametrize("stores_in, severity", [("copy.cuh", "error"), ("gemm.cu", "review")])
def test_the_line_that_stores_is_one_of_the_same_file(stores_in, severity, monkeypatch):
    instrs = [
        SimpleNamespace(line=7 + row, src=3, at=SimpleNamespace(file=file))
        for row, file in enumerate(("copy.cuh", "gemm.cu"))
    ]
    cluster = SimpleNamespace(
        program=SimpleNamespace(instrs=instrs, by_row=dict(enumerate(instrs)), several_files=True)
    )
    monkeypatch.setattr(exchanged_copies, "_written", lambda cluster: {(stores_in, 3): "A"})
    load, said = _finding("review", buffer="tile"), []
    found = {1: _finding("error", buffer="tile", reader="TMA"), 2: load}
    reporter = SimpleNamespace(by_identity=found, blame=lambda finding, cause, text: said.append(text))
    exchanged_copies.exchanged_copies(cluster, reporter)
    assert load.severity == severity
    assert said == ["copy.cuh:3 copies tile, which nobody has written, into A"] * (severity == "error")
