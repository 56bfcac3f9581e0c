"""The kernels of the library, and the two configurations of each that are tried."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tirxlab.rubric import tomllib

ARCHS = ("sm_100a", "sm_103a", "sm_110a")  # in order of preference: the first that a kernel names is used


REFERENCE_PACKAGES = ("triton", "deep_ep", "nvshmem")
REFERENCES_ONLY = (
    "flashinfer",
    "deep_gemm",
    "flash_attn",
    "flash_mla",
    "cutlass",
    "cudnn",
    "fla",
    "sgl_kernel",
)


@dataclass(frozen=True)
class Entry:
    name: str
    module: str
    archs: tuple[str, ...]  # on which the kernel claims to run
    needs: tuple[str, ...]  # packages that its own reference needs

    @property
    def arch(self) -> str | None:
        return next((arch for arch in ARCHS if arch in self.archs), None)


def entries() -> list[Entry]:
    """Every kernel of the library, in the order of its folders; reads the sources without importing them."""
    from tirx_kernels import registry

    found = []
    for category, relative, path in registry._candidate_sources():
        meta = registry._literal_kernel_meta(path)
        if meta:
            needs = tuple(r["package"] for r in meta.get("reference_requirements", ()))
            module = f"tirx_kernels.{category}.{relative}"
            found.append(Entry(meta["name"], module, tuple(meta["runtime_cuda_archs"]), needs))
    return found


def size(value) -> float:
    """The size of a configuration: the logarithm of the product of its numbers."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return 0.0
    if isinstance(value, int | float):
        return math.log(1 + abs(value))
    if isinstance(value, dict):
        return sum(size(v) for k, v in value.items() if k != "label")
    if isinstance(value, list | tuple):
        return math.log(1 + sum(abs(v) for v in value if isinstance(v, int | float)))
    return 0.0


def chosen(module: ModuleType) -> list[dict]:
    """The smallest configuration, and the one farthest from it in the table: the last or the first."""
    configs = list(module.CONFIGS)
    smallest = min([c for c in configs if "empty" not in label(c)] or configs, key=size)
    other = configs[-1] if configs[-1] is not smallest else configs[0]
    return [smallest] if other is smallest else [smallest, other]


def _tuples(value):
    """TOML's arrays as tuples, as the library's own configurations have them."""
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_TABLES = tomllib.loads(Path(__file__).with_name("configurations.toml").read_text(encoding="utf-8"))
SMALLER: dict[str, tuple[str, dict]] = _tuples(_TABLES["smaller"])
SECOND: dict[str, tuple] = _tuples(_TABLES["second"])


def configurations(module: ModuleType) -> list[dict]:
    """The configurations of its tests, of its benchmark, and our own."""
    kernel = module.KERNEL_META["name"]
    theirs = [*module.CONFIGS, *getattr(module, "BENCH_CONFIGS", [])]
    name, changes = SMALLER.get(kernel, ("", {}))
    own = [chosen(module)[0] | changes | {"label": name}] if name else []
    base, *ours = SECOND.get(kernel, ("",))
    if ours:
        given = next(config for config in theirs if label(config) == base)
        own.append(given | ours[1] | {"label": ours[0]})
    return [*theirs, *own]


def first_of(kernel: str, built: list[dict]) -> str:
    """The label of the first configuration that is run: ours, or the first that built."""
    return SMALLER.get(kernel, ("",))[0] or next((c["label"] for c in built if "error" not in c), "")


def second_of(kernel: str, built: list[dict]) -> str:
    """The label of the second configuration: that of configurations.toml, or the last that built."""
    base, *ours = SECOND.get(kernel, ("",))
    return (ours[0] if ours else base) or next((c["label"] for c in built[1:] if "error" not in c), "")


def label(config: dict) -> str:
    return str(config.get("label", "default"))


def arguments(config: dict) -> dict:
    return {k: v for k, v in config.items() if k != "label"}


def load(module_name: str) -> tuple[ModuleType, list[str]]:
    """The kernel's module, and the names of the packages replaced by stand-ins, which only its reference
    needs.
    """
    return with_stand_ins(lambda: importlib.import_module(module_name))


def with_stand_ins(do, packages=REFERENCE_PACKAGES) -> tuple[object, list[str]]:
    """The result of `do()`, and the packages that were replaced by stand-ins: those of `packages` not
    installed.
    """
    from cpu_torch import stand_in

    missing: list[str] = []
    while True:
        try:
            return do(), missing
        except ModuleNotFoundError as error:
            name = error.name or ""
            if name.split(".")[0] not in packages or name in missing:
                raise
            stand_in(name)
            missing.append(name)
