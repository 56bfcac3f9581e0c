"""Builds the differential set: `python -m research.chip.make [SET] [--only TEXT]`. Needs no GPU.

Every case runs on ptxsim under three orders, which must agree; the results are stored with the case. Then the
rows of the instruction table that no case executes are listed. If ptxas is installed, every case is also
assembled, so that errors show before the GPU run. The set itself is not in the repository: set.txt.xz,
the manifest, has the hashes of what the GPU machine was given.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ptxsim.units.all_units  # noqa: F401
from ptxsim.frontend.ast import Instr, Pair
from ptxsim.frontend.parser import parse
from ptxsim.isa.scalar import table as scalar
from ptxsim.units.registry import UNITS, find_unit
from research import packed
from research.chip.case import load_set, save_set
from research.chip.cases import all_cases
from tirxlab.devices import sim

SET = Path(__file__).parent / "set.tar.xz"
MANIFEST = SET.with_name("set.txt.xz")
DIGITS = 4  # hexadecimal digits of each hash
ORDERS = ("adverse", 1, "program")  # the last one's results are kept
NEWER = (  # in patterns of forms that need sm_100 or PTX 9.2
    *("f32x2", "ue8m0", "{.sat}.f32.type"),
    "cvt.rn{.satfinite}{.relu}.dtype.type",
)
NOT_HERE = (  # only on sm_100a, or nothing to compare
    "tcgen05",
    "clusterlaunchcontrol",
    "st.bulk",
    "call",
    "trap",
    "brkpt",
    "clock",
)


def simulate(case) -> dict[str, np.ndarray]:
    """ptxsim's outputs of a case; raises RuntimeError if orders differ or a run ends with an error."""
    kept = None
    for order in ORDERS:
        arrays = {k: v.copy() for k, v in case.arrays.items()}
        run = sim.run(case.artifact(), arrays, order=order)
        wrong = [str(f) for f in run.findings if f.severity != "review"]
        if wrong:
            raise RuntimeError(f"{case.name}, order {order}: {wrong[0]}")
        results = {name: arrays[name] for name in case.outputs}
        for name, array in results.items():
            if kept is not None and array.tobytes() != kept[name].tobytes():
                raise RuntimeError(f"{case.name}: {name} depends on the order ({order})")
        kept = results
    return kept


def assemble(case) -> str:
    """ptxas's error message; "" if there is none (or no ptxas)."""
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "k.ptx"
        file.write_text(case.artifact().ptx)
        arch = case.artifact().arch if case.artifact().arch.endswith("a") else "sm_90"
        command = [ptxas, "-arch", arch, str(file), "-o", str(file.with_suffix(".cubin"))]
        done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip().splitlines()[0]


# ---- coverage ----


def rows_of(instr: Instr) -> set[str]:
    """Rows of the instruction table that an instruction belongs to."""
    unit = find_unit(instr)
    if unit is not None:
        return {unit.name}
    if instr.op in scalar.OPCODES:
        pair = ("|",) * isinstance(instr.operands[0], Pair)
        found = scalar.spellings(instr.op).get(scalar.ordered((*instr.mods, *pair)), ())
        return {f"{instr.op} {form.pattern}" for form, _ in found}
    return {instr.op}


def table() -> set[str]:
    """All rows that a chip with sm_80 or sm_90a supports."""
    rows = {name for name in UNITS if not name.startswith(NOT_HERE)}
    patterns = [(f.name, form.pattern) for f in scalar.FAMILIES for form in f.forms]
    rows |= {f"{name} {p}" for name, p in patterns if not any(word in p for word in NEWER)}
    return rows | {"ld", "st", "bra", "brx", "cvta", "isspacep", "mapa", "getctarank"}


def covered(cases) -> set[str]:
    rows: set[str] = set()
    for case in cases:
        for function in parse(case.artifact().ptx).functions.values():
            for item in function.body:
                if isinstance(item, Instr):
                    rows |= rows_of(item)
    return rows


def manifest(path: Path) -> str:
    """The rows that are not covered, and for each case the hashes of its PTX, its inputs and ptxsim's
    results.
    """

    def digest(*parts: bytes) -> str:
        return hashlib.sha256(b"".join(parts)).hexdigest()[:DIGITS]

    def arrays(given: dict[str, np.ndarray]) -> str:
        return digest(*(given[name].tobytes() for name in sorted(given)))

    about, cases = load_set(path)
    lines = [f"# {name}: {json.dumps(told)}" for name, told in about.items()]
    lines += [
        f"{digest(c.artifact.ptx.encode())} {arrays(c.arrays)} {arrays(c.expected)} {c.name}" for c in cases
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", nargs="?", type=Path, default=SET)
    parser.add_argument("--only", default="", help="cases whose names contain this; nothing is saved")
    options = parser.parse_args()
    cases = [c for c in all_cases() if options.only in c.name]
    done, failed = [], []
    for i, case in enumerate(cases):
        try:
            complaint = assemble(case)
            if complaint:
                raise RuntimeError(f"{case.name}: ptxas: {complaint}")
            done.append((case, simulate(case)))
        except (RuntimeError, ValueError) as error:
            failed.append(str(error))
            print(f"left out: {error}", flush=True)
        if i % 100 == 99:
            print(f"{i + 1} of {len(cases)}", flush=True)
    missing = sorted(table() - covered(case for case, _ in done))
    print(f"{len(done)} cases; {len(table()) - len(missing)} of {len(table())} rows of the table are covered")
    for row in missing:
        print(f"  no case: {row}")
    if not options.only:
        save_set(options.set, done, {"rows": len(table()), "uncovered": missing, "left_out": failed})
        packed.write(MANIFEST, manifest(options.set))
        print(f"{options.set}: {options.set.stat().st_size >> 10} KiB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
