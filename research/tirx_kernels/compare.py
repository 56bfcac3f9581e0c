"""`python compare.py ROWS [--manifest FILE]`: where a new run of the library differs from the manifest.

Line numbers of PTX do not count (report.plain), nor do seconds. Exit status 1 if a row differs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from report import _built, _ran, manifest, plain, read

HERE = Path(__file__).resolve().parent
COMPARED = ("configs", "builds", "lowers", "refused", "ran", "launches", "verdict", "right", "findings")
ALIKE = 160  # characters of a finding that are compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--manifest", type=Path, default=HERE / "manifest.json.xz")
    args = parser.parse_args()
    known = manifest(args.manifest)
    counts: dict[str, int] = {}
    different: list[str] = []
    for what, told in (("build", _built), ("run", _ran), ("second", _ran)):
        files = sorted((args.rows / what).glob("*.json"))
        counts[what] = len(files)
        for file in files:
            row = known.get(file.stem, {})
            lines = differences(row.get("second", {}) if what == "second" else row, told(read(file)))
            different += [f"{file.stem} ({what}): {line}" for line in lines]
    print(*different, sep="\n")
    print(
        ", ".join(f"{n} of {what}" for what, n in counts.items()), f"compared; {len(different)} differences"
    )
    return 1 if different else 0


def differences(before: dict, now: dict) -> list[str]:
    """A line for each field that has changed."""
    return [
        f"{field}: {before.get(field)!r} before, {now[field]!r} now"
        for field in COMPARED
        if field in now and _compared(before.get(field)) != _compared(now[field])
    ]


def _compared(value):
    return [plain(str(item))[:ALIKE] for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    raise SystemExit(main())
