"""How a launch is written down (see cases.py). Needs nothing, so that every compiler's environment has it."""

import json
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


def save(folder: Path, kernels: dict[str, tuple[str, dict]]) -> None:
    """Writes NAME.ptx and index.json for name -> (PTX, launch)."""
    for name, (ptx, _) in kernels.items():
        (folder / f"{name}.ptx").write_text(ptx)
    index = {name: spec for name, (_, spec) in kernels.items()}
    (folder / "index.json").write_text(json.dumps(index, indent=1))
