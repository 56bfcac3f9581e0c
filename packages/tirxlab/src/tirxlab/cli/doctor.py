"""`./lab doctor`: what this machine can and cannot do, and what to install for the rest.

Every line comes from a real attempt (loading NVRTC, asking the driver), not from comparing versions.
"""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import typer

from tirxlab.cache_folder import root
from tirxlab.checkout import environment
from tirxlab.cli.common import JsonOption, output, print_json

GOOD, MISSING, OPTIONAL = "ok", "missing", "not here"
PACKAGES = {  # on the package index -> what is imported of it
    "numpy": "numpy",
    "numba": "numba",
    "apache-tvm": "tvm.tirx",
    "cuda-bindings": "cuda.bindings.nvrtc",
    "ml-dtypes": "ml_dtypes",
    "jinja2": "jinja2",
    "pytest": "pytest",
}


@dataclass
class Finding:
    """One line of the report."""

    what: str  # the thing looked at
    state: str  # GOOD, MISSING (the lab needs it) or OPTIONAL (only some commands do)
    detail: str  # version, size, or the reason it does not work
    hint: str = ""  # what to do, if anything


def run(json: JsonOption = False) -> None:
    """Show what this machine can and cannot do, and what to install. Exit 1: it cannot run kernels."""
    findings = [probe() for probe in PROBES]
    able = abilities(findings)
    if json:
        print_json({"machine": platform.platform(), "findings": [asdict(f) for f in findings], "can": able})
    else:
        show(findings, able)
    raise typer.Exit(0 if able["build kernels"] and able["simulate them"] else 1)


def show(findings: list[Finding], able: dict[str, bool]) -> None:
    """Print the report."""
    console = output()
    colours = {GOOD: "green", MISSING: "red", OPTIONAL: "yellow"}
    for finding in findings:
        console.print(f"{finding.what:<18}[{colours[finding.state]}]{finding.state:<9}[/] {finding.detail}")
        if finding.hint:
            console.print(f"{'':<28}-> {finding.hint}")
    console.print()
    for what, possible in able.items():
        console.print(f"{what:<36}{'[green]yes[/]' if possible else '[yellow]no[/]'}")


def abilities(findings: list[Finding]) -> dict[str, bool]:
    """Ability -> whether this machine has it, by the findings."""
    good = {finding.what: finding.state == GOOD for finding in findings}
    build = good["python"] and good["packages"] and good["nvrtc"]
    return {
        "build kernels": build,
        "simulate them": good["python"] and good["packages"] and good["memory"],
        "read their SASS": build and good["nvdisasm"],
        "run sm_100a kernels on this machine": build and good["blackwell gpu"] and good["torch"],
        "run them on a cloud B200": good["modal"],
    }


def python_version() -> Finding:
    good = (3, 10) <= sys.version_info < (3, 14)
    hint = "" if good else "use Python 3.10 to 3.13: LAB_PYTHON=python3.12 ./lab doctor"
    return Finding(
        "python", GOOD if good else MISSING, f"{platform.python_version()} ({sys.executable})", hint
    )


def packages() -> Finding:
    """Imports each package in a process of its own, because some damaged packages end the process."""
    versions, broken = [], []
    for name, module in PACKAGES.items():
        said = import_error(module)
        if said:
            broken.append(f"{name}: {said}")
        else:
            versions.append(f"{name} {importlib.metadata.version(name)}")
    if broken:
        hint = f"remove {sys.prefix} and run ./lab again"
        return Finding("packages", MISSING, "; ".join(broken), hint)
    return Finding("packages", GOOD, ", ".join(versions))


def import_error(module: str) -> str:
    """Why a module cannot be imported, on one line; "" if it can."""
    code = f"import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def nvrtc() -> Finding:
    try:
        from cuda.bindings import nvrtc as library

        status, major, minor = library.nvrtcVersion()
        if int(status) != 0:
            raise RuntimeError(f"nvrtcVersion returned {status}")
    except Exception as error:
        hint = "NVRTC has wheels for Linux only; elsewhere use the container (docs) or Modal"
        return Finding("nvrtc", MISSING, str(error).splitlines()[0] if str(error) else repr(error), hint)
    return Finding("nvrtc", GOOD, f"{major}.{minor}, turns CUDA into PTX without a GPU")


def memory() -> Finding:
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    hint = "" if free >= 4 else "sizes of 4096 and more need about 4 GB; stay at 1024"
    return Finding("memory", GOOD if free >= 1.5 else MISSING, f"{free:.1f} GiB, {cores} cores", hint)


def cache() -> Finding:
    """Where built kernels are kept."""
    folder = root()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(existing).free / 2**30
    if not os.access(existing, os.W_OK):
        return Finding("cache", MISSING, f"{folder} cannot be written", "set LAB_CACHE to a folder of yours")
    return Finding("cache", GOOD, f"{folder}, {free:.0f} GiB free")


def gpu() -> Finding:
    try:
        name, capability = first_gpu()
    except Exception as error:
        hint = "not needed: kernels run on the simulator (--device sim)"
        return Finding("blackwell gpu", OPTIONAL, str(error), hint)
    text = f"{name}, compute capability {capability[0]}.{capability[1]}"
    if capability[0] == 10:
        return Finding("blackwell gpu", GOOD, text)
    return Finding("blackwell gpu", OPTIONAL, text, "sm_100a needs 10.x (B200, B100); use --device sim")


def first_gpu() -> tuple[str, tuple[int, int]]:
    """Name and compute capability of GPU 0, from the driver; DeviceError says why there is none."""
    from tirxlab.devices import driver

    return driver.use_device(0), driver.capability(driver.api(), 0)


def nvdisasm() -> Finding:
    from inspect_cuda import find_nvdisasm

    path = find_nvdisasm()
    hint = "" if path else "pip install nvidia-cuda-nvdisasm (only `inspect --as sass` needs it)"
    return Finding("nvdisasm", GOOD if path else OPTIONAL, str(path or "not found"), hint)


def confinement() -> Finding:
    """How a kernels file is confined while it is built; tirxlab/sandbox/levels.py explains the levels."""
    from tirxlab.sandbox import strongest

    level = strongest()
    if level in ("bubblewrap", "namespaces"):
        return Finding("confinement", GOOD, "kernels files are built without network and without your files")
    hint = "fine for your own code; grade others' in a container (SECURITY.md)"
    return Finding("confinement", OPTIONAL, f"level {level!r}: a kernels file sees what you can read", hint)


def optional_package(name: str, use: str, install: str) -> Callable[[], Finding]:
    def probe() -> Finding:
        try:
            return Finding(name, GOOD, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            return Finding(name, OPTIONAL, f"only {use} needs it", install)

    return probe


PROBES: tuple[Callable[[], Finding], ...] = (
    python_version,
    packages,
    nvrtc,
    memory,
    cache,
    nvdisasm,
    confinement,
    gpu,
    optional_package("torch", "--device cuda", ".venv/bin/python -m pip install 'torch>=2.9'"),
    optional_package("modal", "run_modal.py", ".venv/bin/pip install modal && .venv/bin/modal setup"),
)
