"""`python forecast_one.py MODULE ARCH LABEL OUT.json`: the time of a workload on a B200, predicted by a
model.

The library's benchmark is started with torch on the CPU. The function that it would time is called once; its
launches are not run, but recorded and replayed by ptxsim.forecasting. OUT has each launch's time without the
device's launch constant. Nothing is measured here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

from build_one import CAPABILITY, short

from ptxsim.timing.assembler import accepted

# Functions of a module that call or compare with a reference. Nothing runs here, so nothing is compared.
COMPARING = (
    "_flashinfer_module", "_launch_flashinfer", "_check_public_wrappers", "_assert_outputs_match",
    "_assert_inputs_unchanged", "_validate_outputs",
)  # fmt: skip


class Enough(BaseException):
    """Raised once the timed function has been called; the rest of the benchmark is not needed."""


def main(module_name: str, arch: str, wanted: str, out: Path) -> None:
    os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"
    os.environ["TIRX_PREPARE_NUM_SMS"] = "148"
    os.environ["TIRX_PREPARE_CUDA_ARCH"] = arch
    from capture import Kept, patch_tvm
    from catalogue import (
        REFERENCE_PACKAGES,
        REFERENCES_ONLY,
        arguments,
        configurations,
        label,
        load,
        with_stand_ins,
    )
    from cpu_torch import as_cuda
    from hooks import connect
    from on_ptxsim import Simulator

    sys.path.insert(0, str(Path(__file__).parent / "stands"))
    kept, simulator = Kept(), Simulator(waiting=[])
    patch_tvm(kept, arch)
    connect(kept, simulator)
    row: dict = {"module": module_name, "label": wanted, "launches": []}
    start = time.process_time()
    with as_cuda(CAPABILITY[arch]) as device:
        device.on_address = simulator.note
        try:
            module, row["stand_ins"] = load(module_name)
            config = next(arguments(c) for c in configurations(module) if label(c) == wanted)
            packages = REFERENCE_PACKAGES + REFERENCES_ONLY  # nothing is compared with them here
            with_stand_ins(lambda: call_timed(module, config, simulator), packages)
        except Enough:
            row["launches"] = [told(kernel, launch, arch) for kernel, launch in simulator.waiting]
        except BaseException as error:
            row["error"], row["trace"] = short(error), traceback.format_exc()[-3000:]
    row["cpu_s"] = round(time.process_time() - start, 1)
    out.write_text(json.dumps(row, indent=1))


def call_timed(module, config: dict, simulator) -> None:
    """Starts the benchmark; the first function that it passes to the timer is the library's kernel: raises
    Enough.
    """
    import tirx_kernels.ported.cudnn._reference as reference
    import tirx_kernels.runner as runner
    from cpu_torch import Anything

    reference.load_reference_module = Anything
    for name in COMPARING:
        if hasattr(module, name):
            setattr(module, name, lambda *args, **kwargs: None)

    def timer(functions, *args, **kwargs):
        simulator.waiting.clear()  # drops the launches that prepare
        next(iter(functions.values()))()
        raise Enough

    runner.bench = timer
    prepared = module.prepare_bench(**config)
    if hasattr(module, "bench"):
        module.bench = timer
    prepared.run_gpu()


def told(kernel, launch, arch: str) -> dict:
    """The prediction for one launch."""
    from ptxsim.forecasting import assembled, chip, predict, sample

    registers, cubin = machine_code(kernel.ptx, arch)
    model = chip("b200", "kernel")
    assembly = assembled(kernel.ptx.read_text(), arch)
    taken = sample(launch, registers, cubin, sms=int(model.sms), assembly=assembly)
    found = predict(taken, model)
    return {
        "kernel": kernel.name, "grid": launch.grid, "threads": launch.threads, "registers": registers,
        "shared": launch.shared_end, "resident": found.resident, "us": (found.seconds - model.launch) * 1e6,
        "ghz": round(found.ghz, 3), "hbm_bytes": found.work.hbm_bytes, "l2_bytes": found.work.l2_bytes,
        "tensor_busy": round(found.tensor_busy, 3), "spent": {k: round(v, 3) for k, v in found.spent.items()},
    }  # fmt: skip


def machine_code(path: Path, arch: str) -> tuple[int, bytes]:
    """(registers per thread, cubin) of a PTX file, by ptxas; (0, b"") if there is no ptxas."""
    cubin, log = path.with_suffix(".cubin"), path.with_suffix(".log")
    if not cubin.exists() and shutil.which("ptxas"):
        text = path.with_suffix(".accepted")
        text.write_text(accepted(path.read_text()))
        command = ["ptxas", "-v", "-arch", arch, str(text), "-o", str(cubin)]
        log.write_text(subprocess.run(command, capture_output=True, text=True).stderr)
    if not cubin.exists():
        return 0, b""
    found = re.findall(r"Used (\d+) registers", log.read_text())
    return max(map(int, found), default=0), cubin.read_bytes()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
