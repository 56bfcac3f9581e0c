"""`ptxsim run FILE`: launches one kernel with arguments from the command line, and checks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ptxsim.cli import common
from ptxsim.cli.common import EXIT, Bad, check_output, order_of
from ptxsim.cli.files import module_of
from ptxsim.cli.specs import argument, array, triple
from ptxsim.driver.telling import amount, announce_compilation, say, short, worst

FORMATS = ("text", "json", "sarif", "github")


def command(
    file: Path = common.FILE,
    args: list[str] = typer.Argument(
        None, help="A.npy, zeros:f32:64, random:f16:8x8:SEED, map:.., 5, f32:1.5"
    ),
    entry: str = common.ENTRY,
    grid: str = common.GRID,
    block: str = common.BLOCK,
    cluster: str = common.CLUSTER,
    shared: int = common.SHARED,
    arch: str = common.ARCH,
    orders: str = typer.Option("program", help="Orders of completion to run, such as program,adverse,7."),
    checks: bool = typer.Option(True, help="Look for races, missing fences and so on."),
    out: list[str] = typer.Option([], help="N=FILE.npy: save argument N after the run."),
    check_against: list[str] = typer.Option([], help="N=ARRAY: argument N must hold this after the run."),
    rtol: float = typer.Option(1e-3, help="Relative tolerance of --check-against."),
    atol: float = typer.Option(1e-2, help="Absolute tolerance of --check-against."),
    trace: Path | None = typer.Option(None, help="Write the timeline of the first cluster (Perfetto)."),
    report: Path | None = typer.Option(
        None, help="Write verdicts, findings and the timeline as one HTML page."
    ),
    form: str = typer.Option("text", "--format", help="text, json, sarif or github."),
    plain: bool = typer.Option(False, "--json", help="The same as --format json."),
) -> int:
    """Launch one kernel and check it. Exit code: 1 for an error or a wrong result, 3 for incomplete."""
    form = "json" if plain else form
    if form not in FORMATS:
        raise Bad(f"--format must be one of {', '.join(FORMATS)} (got {form!r})")
    wanted = [order_of(order.strip()) for order in orders.split(",")]
    shape: dict[str, Any] = {"grid": triple(grid, "--grid"), "block": triple(block, "--block")}
    shape |= {"cluster": triple(cluster, "--cluster"), "shared_bytes": shared}
    expected = dict(_numbered(item, "--check-against", len(args or [])) for item in check_against)
    saved = dict(_numbered(item, "--out", len(args or [])) for item in out)
    for path in (trace, report, *map(Path, saved.values())):
        check_output(path)
    if not (rtol >= 0 and atol >= 0):
        raise Bad(f"tolerances must be 0 or more (got {rtol} and {atol})")
    module, _ = module_of(file, arch)
    name = entry_of(module, entry, file)
    announce_compilation()
    results, wrong, values = [], [], []
    for order in wanted:
        values = [argument(word) for word in args or []]
        options = {"checks": checks, "order": order, "trace": trace is not None or report is not None}
        results.append(launched(module, name, values, options | shape))
        asked = {} if refused(results[-1]) else expected
        wrong += [_difference(values, n, spec, rtol, atol) for n, spec in asked.items()]
        module.reset()
    for number, target in saved.items():
        with open(target, "wb") as sink:  # np.save would add .npy to a name without it
            np.save(sink, data_of(values, number))
    if trace is not None:
        from ptxsim.trace.export import chrome

        trace.write_text(json.dumps(chrome(results[0].trace, short(name))))
    if report is not None:
        from ptxsim.cli.page import page

        report.write_text(page(str(file), short(name, 200), shape, wanted, results, [w for w in wrong if w]))
    tell(form, str(file), name, wanted, results, [w for w in wrong if w])
    return 1 if any(wrong) else EXIT.get(worst(r.verdict for r in results), 0)


def entry_of(module, entry: str, file: Path) -> str:
    """The mangled name of the kernel that `entry` names, mangled or readable; if `entry` is "", the name of
    the only kernel. Raises Bad unless exactly one kernel fits.
    """
    names = list(module.programs)
    found = [n for n in names if entry in (n, short(n, 10_000))] if entry else names
    if len(found) == 1:
        return found[0]
    known = ", ".join(short(n) for n in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if not names:
        raise Bad(f"{file} holds no kernel")
    if entry and not found:
        raise Bad(f"{file} has no kernel {entry!r} (kernels: {known})")
    raise Bad(f"{file} has {len(found)} kernels: choose one by --entry ({known})")


def launched(module, name: str, values: list, options: dict):
    """The Result of the launch. Raises Bad for arguments that do not fit the kernel."""
    import ptxsim
    from ptxsim.driver.device import Record

    try:
        return module.launch(name, args=values, **options)
    except (ptxsim.PtxError, ptxsim.Fault) as error:
        findings = Record.refused(1, name, error).findings
        return ptxsim.Result("incomplete", findings, {"warp_instructions": 0, "ctas": 0, "seconds": 0.0})
    except ValueError as error:
        raise Bad(str(error)) from None


def refused(result) -> bool:
    """Whether the kernel did not start because it uses something that is not modelled."""
    return result.verdict == "incomplete" and not result.stats["ctas"]


def _numbered(item: str, option: str, count: int) -> tuple[int, str]:
    number, _, rest = item.partition("=")
    if not number.isdecimal() or not rest or int(number) >= count:
        raise Bad(
            f"{option} must be N={'FILE' if option == '--out' else 'ARRAY'}, N below {count} (got {item!r})"
        )
    return int(number), rest


def data_of(values: list, number: int) -> np.ndarray:
    """The array of an argument. Raises Bad for a scalar."""
    data = getattr(values[number], "array", values[number])
    if not isinstance(data, np.ndarray):
        raise Bad(f"argument {number} is a scalar, not an array")
    return data


def _difference(values: list, number: int, spec: str, rtol: float, atol: float) -> str:
    """A line that says which values of an argument are wrong; "" if none are."""
    got, expected = data_of(values, number), array(spec)
    if got.shape != expected.shape:
        raise Bad(f"argument {number} has shape {got.shape}, {spec} has {expected.shape}")
    if expected.dtype.kind == "V" and expected.itemsize == got.itemsize:  # numpy saves bf16 without its name
        expected = expected.view(got.dtype)
    try:
        numbers = np.complex128 if "c" in got.dtype.kind + expected.dtype.kind else np.float64
        one, two = got.astype(numbers), expected.astype(numbers)
    except (TypeError, ValueError):
        raise Bad(
            f"argument {number} is {got.dtype}, {spec} is {expected.dtype}: the types cannot be compared"
        ) from None
    off = ~np.isclose(one, two, rtol=rtol, atol=atol, equal_nan=True)
    if not off.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(off)[0])
    first = f"first {at}: {got[at]}, not {expected[at]}"
    return f"argument {number}: {off.sum()} of {off.size} numbers are wrong, {first}"


def tell(form: str, file: str, name: str, orders: list, results: list, wrong: list[str]) -> None:
    from ptxsim.report import formats
    from ptxsim.report.findings import told_once
    from ptxsim.version import VERSION

    findings = [finding for result in results for finding in result.findings]
    if form == "sarif":
        print(formats.sarif(findings, file, VERSION))
    elif form == "github":
        print(formats.github(findings, file))
    elif form == "json":
        runs = [
            {"order": order, "verdict": r.verdict, "findings": [formats.plain(f) for f in r.findings],
             "notes": r.notes, "printed": list(r.printed)}
            for order, r in zip(orders, results, strict=True)
        ]  # fmt: skip
        print(json.dumps({"file": file, "entry": name, "runs": runs, "wrong": wrong}, indent=1))
    if form == "text" and refused(results[0]):
        print(*told_once(results[0].findings), sep="\n")
        return
    for order, result in zip(orders, results, strict=True) if form == "text" else ():
        for line in result.printed:
            print(line)
        for text in told_once(result.findings):
            print(text)
        work = (
            f"{amount(result.stats['warp_instructions'])} warp instructions, {result.stats['seconds']:.1f} s"
        )
        print(f"{short(name)} in order {order}: {result.verdict}, {work}")
        for note in result.notes:
            print(f"note: {note}")
    for line in wrong:
        say(f"ptxsim: {line}")
