"""A finding that a source line causes repeatedly, with other numbers, is reported once."""

from ptxsim.report.findings import Finding, told_once

AT = [("tma.cuh", 689, "load_async"), ("gemm.cu", 79, "gemm")]


def finding(message: str, **where) -> Finding:
    file, line, _ = where.get("source", AT)[-1]
    place = {"cta": (0, 0, 0), "kernel": "gemm", "ptx": "", "source_file": file, "source_line": line}
    return Finding("mbarrier", "review", message, where=place | where)


def test_findings_of_one_line_that_differ_in_numbers_are_told_once():
    stages = ("arrived is used 4 times", "arrived + 8 B is used 5 times", "arrived + 16 B is used 4 times")
    unrolled = [finding(text, source=AT, ptx_line=line) for line, text in enumerate(stages)]
    other = [
        finding("finished is used 4 times", source=AT, ptx_line=3),
        finding(stages[0], source=[AT[0], ("gemm.cu", 80, "gemm")], ptx_line=4),
        finding(stages[0], ptx_line=5),
        finding(stages[0], ptx_line=6),
    ]
    told = told_once(unrolled + other)
    assert told == [
        f"{unrolled[0]}\n  and 2 more at this line, which differ only in numbers",
        *map(str, other),
    ]
