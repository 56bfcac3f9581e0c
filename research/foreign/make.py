"""Builds kernels.tar.xz, the PTX of other compilers: `python -m research.foreign.make FOLDER [NAME ..]`.

Needs no GPU. FOLDER gets one virtual environment per compiler, with the versions in COMPILERS. Each compiles
its kernels into FOLDER/NAME; kernels of compilers that are not named are kept unchanged. To be run by hand,
never by the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from research import store

HERE = Path(__file__).resolve().parent
COMPILERS = {  # name -> packages; NAME_kernels.py holds the kernels. nvcc is the one in the PATH (13.0)
    "triton": ["triton==3.9.0", "numpy"],
    "cute": ["nvidia-cutlass-dsl==4.8.1", "numpy"],
    "numba": ["numba-cuda[cu13]==0.30.4", "numpy"],
    "nvcc": [],
}
SIZE_LIMIT = 1_000_000  # bytes


def compile_all(name: str, folder: Path) -> dict[str, tuple[str, dict]]:
    """name of the kernel -> (PTX, launch), by one compiler in its own environment."""
    python = folder / f"venv-{name}" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        if COMPILERS[name]:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *COMPILERS[name]], check=True)
    target = folder / name
    target.mkdir(exist_ok=True)
    subprocess.run([str(python), str(HERE / f"{name}_kernels.py"), str(target)], check=True)
    index = json.loads((target / "index.json").read_text())
    return {kernel: ((target / f"{kernel}.ptx").read_text(), spec) for kernel, spec in index.items()}


def kept(archive: Path, names: list[str]) -> dict[str, tuple[str, dict]]:
    """The archive's kernels of all other compilers."""
    if not archive.exists():
        return {}
    old = store.load(archive)
    others = {k: v for k, v in json.loads(old["index.json"]).items() if k.split("_")[0] not in names}
    return {kernel: (old[f"{kernel}.ptx"].decode(), spec) for kernel, spec in others.items()}


def main(folder: Path, names: list[str]) -> None:
    archive = HERE / "kernels.tar.xz"
    kernels = kept(archive, names)
    for name in names:
        kernels |= compile_all(name, folder)
    index = json.dumps({k: kernels[k][1] for k in sorted(kernels)}, indent=1)
    files = {f"{kernel}.ptx": text.encode() for kernel, (text, _) in kernels.items()}
    store.save(archive, files | {"index.json": index.encode()})
    size = archive.stat().st_size
    print(f"{len(kernels)} kernels, {size} bytes")
    if size > SIZE_LIMIT:
        raise SystemExit(f"{archive} has {size} bytes; the limit in the repository is {SIZE_LIMIT}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(COMPILERS):
        raise SystemExit(f"{__doc__}\nNAMES: {', '.join(COMPILERS)}")
    place = Path(sys.argv[1]).resolve()
    place.mkdir(parents=True, exist_ok=True)
    main(place, sys.argv[2:] or list(COMPILERS))
