"""Copies with their sides exchanged: which findings are related."""

from types import SimpleNamespace

from ptxsim.checks.diagnosis.exchanged_copies import exchanged_copies


def _finding(severity: str, **evidence) -> SimpleNamespace:
    return SimpleNamespace(kind="uninitialized", severity=severity, where={"line": 3}, evidence=evidence)


def test_findings_of_no_buffer_are_left_alone():
    """Output that nobody wrote, and local memory that nobody set: neither is a copy."""
    output, local = _finding("error"), _finding("review", cause="unwritten-local")
    exchanged_copies(None, SimpleNamespace(by_identity={1: output, 2: local}))
    assert local.severity == "review"
