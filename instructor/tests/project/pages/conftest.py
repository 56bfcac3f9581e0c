"""Counts what the tests of the pages leave out: only a GPU or Modal are valid reasons."""

from collections import Counter


def pytest_terminal_summary(terminalreporter):
    reports = [r for r in terminalreporter.stats.get("skipped", []) if "test_docs.py" in r.nodeid]
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    ran = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if "test_docs.py::test_command" in report.nodeid
    ]
    if ran or reasons:
        left_out = ", ".join(f"{count} {reason}" for reason, count in reasons.items()) or "none"
        terminalreporter.write_line(f"commands in the pages: {len(ran)} run; left out: {left_out}")
