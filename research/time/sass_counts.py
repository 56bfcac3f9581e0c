"""Counts ptxas's instructions for every saved kernel: `python3 -m research.time.sass_counts OUT.json [SET
..]`.

Needs ptxas and nvdisasm (in the PATH, or in CUDA's usual folders). The PTX of each kernel is assembled again.
Counts are SASS instructions without NOP, by the first part of their name, of the kernel and of each innermost
loop of more than 12 instructions (the range of a backward branch).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from research.time.round import ROUNDS
from research.time.round import sets as sets_of
from research.time.run import SETS, load

LEAST = 12
_LABEL = re.compile(r"\s*(\.L_[\w$]+):")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?);")


def tool(name: str) -> str:
    """The path of a tool; raises SystemExit if there is none."""
    site = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    places = [shutil.which(name), f"/usr/local/cuda/bin/{name}", str(site / "nvidia/cu13/bin" / name)]
    found = next((p for p in places if p and Path(p).exists()), None)
    if found is None:
        raise SystemExit(f"{name} was not found: install the CUDA toolkit, or put its folder into the PATH")
    return found


def kernels(sets: list[Path]):
    """(name, arch, PTX) of every kernel of the sets."""
    for path in sets:
        for saved in load(path):
            yield saved.name, saved.artifact.arch, saved.artifact.ptx


def assembled(ptx: str, ptxas: str | Path) -> tuple[int, bytes]:
    """(registers per thread, cubin) of a kernel for sm_90a."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        text.write_text(ptx)
        command = [str(ptxas), "-arch=sm_90a", "-v", str(text), "-o", str(cubin)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        return int(re.search(r"Used (\d+) registers", said)[1]), cubin.read_bytes()


def disassembled(arch: str, ptx: str) -> str:
    """The SASS of a kernel as nvdisasm writes it."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        text.write_text(ptx)
        subprocess.run([tool("ptxas"), f"-arch={arch}", text, "-o", cubin], check=True, capture_output=True)
        command = [tool("nvdisasm"), "-c", str(cubin)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def instructions(sass: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """([(name, operands)], label -> index of the instruction after it)."""
    found, labels = [], {}
    for line in sass.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(found)
        elif one := _INSTRUCTION.match(line):
            found.append((one[1], one[2]))
    return found, labels


def counted(sass: str) -> dict:
    """The counts of one kernel."""
    rows, labels = instructions(sass)
    loops = []
    for place, (name, operands) in enumerate(rows):
        target = re.search(r"(\.L_[\w$]+)", operands)
        start = labels.get(target[1], place + 1) if name.startswith("BRA") and target else place + 1
        if place - start >= LEAST:
            loops.append((start, place))
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return {"all": classes(rows), "loops": [classes(rows[first : last + 1]) for first, last in inner]}


def classes(rows: list[tuple[str, str]]) -> dict[str, int]:
    count = Counter(name.split(".")[0] for name, _ in rows)
    del count["NOP"]
    return {"total": count.total(), **dict(count.most_common())}


def main(out: Path, sets: list[Path]) -> None:
    def one(kernel):
        name, arch, ptx = kernel
        try:
            return name, counted(disassembled(arch, ptx))
        except subprocess.CalledProcessError as error:
            return name, {"failed": str(error.stderr)[:300]}

    chosen = sets or [path for number in ROUNDS for path in sets_of(number)] + SETS
    with ThreadPoolExecutor() as pool:
        found = dict(pool.map(one, kernels(chosen)))
    version = subprocess.run([tool("ptxas"), "--version"], capture_output=True, text=True).stdout
    out.write_text(json.dumps({"ptxas": version.strip().splitlines()[-1], "kernels": found}) + "\n")
    failed = [name for name, counts in found.items() if "failed" in counts]
    print(f"{len(found)} kernels counted" + (f", not assembled: {failed}" if failed else ""))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
