"""`python run_one.py MODULE ARCH LABEL OUT.json`: builds and runs one configuration of a kernel on ptxsim.

The kernel's own `run_test` drives it, with torch on the CPU in place of CUDA. If its reference is a package
that is not installed, a reference of ours judges (references.py), or none does: `right` is then null. OUT is
written after each launch and at the end.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
import traceback
from collections import ChainMap
from pathlib import Path
from unittest import SkipTest

from build_one import CAPABILITY, run_once, short


def main(module_name: str, arch: str, wanted: str, out: Path) -> None:
    os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"
    os.environ["TIRX_PREPARE_NUM_SMS"] = "148"
    os.environ["TIRX_PREPARE_CUDA_ARCH"] = arch
    from capture import Kept, patch_tvm
    from catalogue import arguments, configurations, label, load
    from cpu_torch import as_cuda
    from hooks import connect
    from on_ptxsim import Simulator

    sys.path.insert(0, str(Path(__file__).parent / "stands"))
    kept, simulator = Kept(), Simulator(order=_order(), record=_record())
    patch_tvm(kept, arch)
    connect(kept, simulator)
    row = {"module": module_name, "label": wanted, "right": None, "stage": "import"}
    start = time.time()
    simulator.after = lambda: write(row, simulator, start, out)
    with as_cuda(CAPABILITY[arch]) as device:
        device.on_address = simulator.note
        try:
            module, row["stand_ins"] = load(module_name)
            config = next(arguments(c) for c in configurations(module) if label(c) == wanted)
            row["stage"] = "run"
            judge(module, config, row, simulator)
        except AssertionError as error:
            row["right"], row["error"], row["trace"] = False, short(error), traceback.format_exc()[-3000:]
        except BaseException as error:
            row["error"], row["trace"] = short(error), traceback.format_exc()[-3000:]
    write(row, simulator, start, out)


def write(row: dict, simulator, start: float, out: Path) -> None:
    """Writes the row so far: a run that is stopped while its reference computes keeps its launches."""
    row["seconds"] = round(time.time() - start, 1)
    row["runs"] = [dataclasses.asdict(run) for run in simulator.runs]
    out.write_text(json.dumps(row, indent=1))


def judge(module, config: dict, row: dict, simulator) -> None:
    """Runs the kernel and records in `row` whether its numbers were right."""
    import decoding
    import delta_rules
    import msa_sparse
    import oracles
    import quantized
    import references
    import scaled_products
    import sparse_mla

    parts = (references, oracles, delta_rules, decoding, quantized, scaled_products, msa_sparse, sparse_mla)
    own = ChainMap(*(part.TABLE for part in parts)).get(module.KERNEL_META["name"])
    try:
        row["by"] = "our reference" if own else "its own test"
        own(module, config) if own else module.run_test(**config)
        row["right"] = True
    except (ImportError, SkipTest, NotImplementedError) as error:
        row["by"], row["missing"] = "nobody", short(error)
        row["where"] = traceback.format_exc()[-700:]
        if not simulator.runs:
            run_once(module, module.prepare_bench(**config))  # nothing judges the numbers


def _record() -> Path | None:
    return Path(os.environ["TIRX_RECORD"]) if os.environ.get("TIRX_RECORD") else None


def _order() -> str | int:
    order = os.environ.get("PTXSIM_ORDER", "program")
    return int(order) if order.isdigit() else order


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
