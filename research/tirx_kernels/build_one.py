"""`python build_one.py MODULE ARCH OUT.json`: builds a kernel's chosen configurations and lowers their PTX.

It runs in a process of its own, so that a kernel that fails or never ends affects nothing else. OUT is
written after each configuration.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path

CAPABILITY = {"sm_100a": (10, 0), "sm_103a": (10, 3), "sm_110a": (11, 0)}


def main(module_name: str, arch: str, out: Path) -> None:
    os.environ.setdefault("TVM_FFI_DISABLE_TORCH_C_DLPACK", "1")
    os.environ["TIRX_PREPARE_NUM_SMS"] = "148"
    os.environ["TIRX_PREPARE_CUDA_ARCH"] = arch
    from capture import Kept, patch_tvm
    from cpu_torch import as_cuda
    from hooks import connect
    from on_ptxsim import Simulator

    sys.path.insert(0, str(Path(__file__).parent / "stands"))
    kept = Kept()
    patch_tvm(kept, arch)
    simulator = Simulator(dry=True)
    connect(kept, simulator)
    row: dict = {"module": module_name, "arch": arch, "configs": []}
    with as_cuda(CAPABILITY[arch]) as device:
        device.on_address = simulator.note
        everything(module_name, row, kept, out)


def everything(module_name: str, row: dict, kept, out: Path) -> None:
    from catalogue import arguments, chosen, label, load

    try:
        module, row["stand_ins"] = load(module_name)
        configs = chosen(module)
        row["of"] = len(module.CONFIGS)
    except Exception as error:
        row["import"] = short(error)
        configs = []
    for config in configs:
        row["configs"].append(build(module, kept, label(config), arguments(config)))
        out.write_text(json.dumps(row, indent=1))
    out.write_text(json.dumps(row, indent=1))


def build(module, kept, label: str, config: dict) -> dict:
    kept.programs.clear()
    from catalogue import with_stand_ins

    start = time.process_time()
    record: dict = {"label": label}
    try:
        with_stand_ins(lambda: compile_(module, config, kept))
    except BaseException as error:
        record["error"] = short(error)
        record["trace"] = traceback.format_exc()[-1500:]
    record["build_s"] = round(time.process_time() - start, 1)
    kernels = [kernel for program in kept.programs for kernel in program.kernels.values()]
    record["kernels"] = [
        {"name": k.name, "ptx": k.ptx.name, "sha256": k.digest, "lowers": lowers(k.ptx)} for k in kernels
    ]
    return record


def compile_(module, config: dict, kept) -> None:
    if hasattr(module, "prepare_bench"):
        prepared = module.prepare_bench(**config)
        if not kept.programs:  # it is compiled when it first runs
            run_once(module, prepared)
    else:
        from tirx_kernels.runner import compile_kernel

        compile_kernel(module.get_kernel(**config))


def run_once(module, prepared) -> None:
    """Launches what a benchmark would, once and without timing it."""
    import tirx_kernels.runner as runner

    def once(functions, **kwargs):
        for function in functions.values():
            function()
        return {}

    runner.bench = once
    if hasattr(module, "bench"):
        module.bench = once
    prepared.run_gpu()


def lowers(path: Path) -> str:
    """ptxsim's refusal of the PTX; "" if it accepts it."""
    import ptxsim

    try:
        ptxsim.load(path.read_text())
    except ptxsim.PtxError as error:
        return str(error)[:400]
    except Exception as error:
        return short(error)
    return ""


def short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip()[:400]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
