"""The format of a launch (see cases.py). It imports nothing, so it works in every compiler's environment."""

import json
import re
from pathlib import Path


def array(name, dtype, *shape, fill="normal"):
    return {"array": name, "dtype": dtype, "shape": shape, "fill": fill}


def output(name, dtype, *shape):
    return array(name, dtype, *shape, fill="zeros")


def scalar(name, value, dtype="int32"):
    return {"scalar": name, "dtype": dtype, "value": value}


def launch(compiler, entry, computes, grid, block, args, shared=0, cluster=(1, 1, 1)):
    """One value of index.json."""
    return {
        "compiler": compiler,
        "entry": entry,
        "computes": computes,
        "grid": grid,
        "block": block,
        "cluster": cluster,
        "shared": shared,
        "args": args,
    }


def without_folders(ptx: str) -> str:
    """Removes this folder's path from `.file` and, byte by byte, from the debug sections."""
    ptx = re.sub(r'(\.file\s+\d+ )"[^"]*/', r'\1"', ptx)
    place = str(Path(__file__).resolve().parent).encode()
    line = r"\s*\.b8 {}\b[^\n]*\n"
    path = "".join(line.format(byte) for byte in place)
    return re.sub(path, "\n" + ".b8 46\n" * len(place), ptx)


def save(folder: Path, kernels: dict[str, tuple[str, dict]]) -> None:
    """Writes NAME.ptx and index.json for name -> (PTX, launch)."""
    for name, (ptx, _) in kernels.items():
        (folder / f"{name}.ptx").write_text(without_folders(ptx))
    index = {name: spec for name, (_, spec) in kernels.items()}
    (folder / "index.json").write_text(json.dumps(index, indent=1))
