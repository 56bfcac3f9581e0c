"""Writes the instruction table of packages/ptxsim/docs/model.md from the tables that the simulator runs.

    python packages/ptxsim/docs/model_table.py [--check]

The table stands between two marker comments; --check exits 1 if it is not up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ptxsim.units.all_units  # noqa: F401
from ptxsim.isa.scalar import table as scalar
from ptxsim.units.registry import UNITS

HERE = Path(__file__).resolve().parent
PAGE = HERE / "model.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def rows() -> list[tuple[str, str, str]]:
    """(instruction, PTX ISA section, how it runs), by section and name."""
    found = {}
    for family in scalar.FAMILIES:
        forms = sum(1 for form in family.forms for _ in form.expand())
        key = (family.name, family.section)
        found[key] = found.get(key, 0) + forms
    scalars = [
        (f"`{name}`", section, f"scalar, {count} form{'s' * (count > 1)}")
        for (name, section), count in found.items()
    ]
    units = [(f"`{spec.name}`", spec.section, "unit") for spec in UNITS.values()]
    control = [("`bra`, `brx.idx`, `ret`, `exit`, `call`", "9.7.12", "control")]
    memory = [("`ld`, `st`", "9.7.9", "memory, all spaces and vectors")]
    return sorted([*scalars, *units, *control, *memory], key=lambda row: (_order(row[1]), row[0]))


def _order(section: str) -> tuple:
    parts = section.split(",")[0].split("-")[0].strip().split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def table() -> str:
    lines = ["| instruction | PTX ISA 9.0 section | how |", "|---|---|---|"]
    return "\n".join(lines + [f"| {a} | {b} | {c} |" for a, b, c in rows()])


def main() -> int:
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    new = f"{head}{BEGIN}\n{table()}\n{END}{tail}"
    if "--check" in sys.argv:
        if new != text:
            print(
                "model.md is old: run python packages/ptxsim/docs/model_table.py",
                file=sys.stderr,
            )
        return int(new != text)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
