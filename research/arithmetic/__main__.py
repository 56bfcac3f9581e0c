"""Random products on this machine's GPU, beside ptxsim and the model: `python -m research.arithmetic run`.

    python -m research.arithmetic run [--tiles T] [--rounds R] [--jobs J] [--only TEXT] [--out DIR]
    python -m research.arithmetic table            the table of README.md, from results.json
    python -m research.arithmetic check            without a GPU: the saved slice against ptxsim and the model

A round has T tiles of each form, from its own seed. DIR gets results.json, one row a form, and slice.npz,
which holds what the chip left of the first SLICE tiles of each mode, from seed 0.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np

from research.arithmetic import model, ours
from research.arithmetic.forms import Form, forms, registers
from research.arithmetic.vectors import MODES, matrices

HERE = Path(__file__).parent
FITTED = 64  # tiles on which adders are tried
SLICE = 8  # tiles of a form that are kept: the first of a run with as many


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:16]


def distance(form: Form, codes: tuple, chip: np.ndarray, mine: np.ndarray) -> dict[str, float]:
    """Of floats: where one is a number and the other not, and the largest difference of two numbers, as log2
    of its share of the largest term (products and C).
    """
    a, b, c = (model.doubles(x, kind) for x, kind in zip(codes, (form.a, form.b, form.d), strict=True))
    first, second = model.doubles(chip, form.d), model.doubles(mine, form.d)
    both = np.isfinite(first) & np.isfinite(second)
    same = both | (np.isnan(first) & np.isnan(second)) | (first == second)
    with np.errstate(all="ignore"):
        largest = np.abs(c)
        for l in range(form.k):
            largest = np.fmax(largest, np.abs(a[:, :, None, l] * b[:, None, :, l]))
        share = np.where(both & (first != second), np.abs(first - second) / largest, 0.0)
    worst = float(np.nanmax(share)) if np.isfinite(share).any() else 0.0
    return {"class differs": int((~same).sum()), "worst": float(np.log2(worst)) if worst else None}


def compare(form: Form, tiles: int, seed: int, unit) -> dict:
    """One round: how many elements of D agree, by mode."""
    codes = matrices(form, tiles, seed)
    given = registers(form, *codes)
    chip = unit.run(given) if unit else None
    found = {"elements": chip.size, "inputs": digest(*codes), "chip": digest(chip)}
    mine = ours.product(form, given, codes)
    found["ptxsim"] = _by_mode(form, chip, mine)
    if form.is_float:
        found |= distance(form, codes, chip, mine)
        modelled = model.product(form, *codes, model.adder_of(form))
        found["model"] = _by_mode(form, chip, modelled)
        found["examples"] = [
            [*map(int, at), *(f"{x[tuple(at)]:x}" for x in (chip, modelled, codes[2]))]
            for at in np.argwhere(chip != modelled)[:4]
        ]
    return found


def _by_mode(form: Form, chip: np.ndarray, other: np.ndarray) -> dict[str, int]:
    """Elements that differ."""
    wrong = (chip != other).reshape(len(chip), -1).sum(1)
    if not form.is_float:
        return {"all": int(wrong.sum())}
    return dict(zip(MODES, wrong.reshape(len(MODES), -1).sum(1).tolist(), strict=True))


def fitted(form: Form, unit) -> list:
    """The adders that the chip is nearest to, best first: [elements that differ, options]."""
    codes = matrices(form, FITTED, 1)
    chip = unit.run(registers(form, *codes))
    tried = []
    for bits in (13, 14, 22, 23, 24, 25, 26, 27):
        for step in dict.fromkeys((form.k, form.k // 2, max(form.k // 4, 1))):
            for rounding in (model.F32, model.F32_SHORT) if form.d == "f32" else (model.F16,):
                for pairs, after in ((False, False), (True, True), (False, True), (True, False)):
                    adder = model.Adder(bits, step, rounding, pairs, after)
                    wrong = int((model.product(form, *codes, adder) != chip).sum())
                    tried.append([wrong, [bits, step, rounding, pairs, after]])
    return [chip.size, *sorted(tried)[:3]]


def on_chip(form: Form, tiles: int, rounds: int, fit: bool) -> tuple[dict, np.ndarray]:
    """(row of results.json, the slice that is kept)."""
    from research.arithmetic.chip import Unit

    start = time.perf_counter()
    few = matrices(form, SLICE, 0)
    given = registers(form, *few)
    kept = Unit(form, SLICE, [len(x) for x in given]).run(given)
    row = {"form": form.name, "family": form.family, "inputs": digest(*few), "rounds": []}
    counts = [len(x) for x in given]
    if fit and form.is_float and form.d != "f64":
        row["fit"] = fitted(form, Unit(form, FITTED, counts))
    unit = Unit(form, tiles, counts)
    for seed in range(1, rounds + 1):
        row["rounds"].append(compare(form, tiles, seed, unit))
    row["seconds"] = round(time.perf_counter() - start, 1)
    return row, kept


def _job(arguments: tuple) -> tuple[dict, np.ndarray]:
    form, tiles, rounds, fit = arguments
    tiles = tiles if form.unit == "mma" else tiles // 8  # of 1024 elements, not 128
    try:
        return on_chip(form, tiles if form.is_float else tiles // 4, rounds, fit)
    except Exception as error:  # one form must not cost the others
        import traceback

        return {"form": form.name, "error": traceback.format_exc()[-1500:] + str(error)}, np.zeros(0)


def run(given) -> int:
    chosen = [form for form in forms() if given.only in form.name]
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        work = [(form, given.tiles, given.rounds, given.fit) for form in chosen]
        rows, kept = [], {}
        for form, (row, few) in zip(chosen, pool.map(_job, work), strict=True):
            print(json.dumps({k: v for k, v in row.items() if k != "rounds"}), flush=True)
            rows.append(row)
            kept[form.name] = few
    given.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.out / "slice.npz", **kept)
    (given.out / "results.json").write_text(json.dumps(rows, indent=None) + "\n")
    return 1 if any("error" in row for row in rows) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run"])
    parser.add_argument("--tiles", type=int, default=65536)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--only", default="")
    parser.add_argument("--fit", action="store_true", help="look for the adder anew")
    parser.add_argument("--out", type=Path, default=HERE)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
