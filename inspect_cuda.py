"""Shows what the compiler made of a step.

    python inspect_cuda.py STEP [SIZE] [--kernels FILE] [--as cuda|ptx|sass|regs] [--body] [--lines]

The text goes to standard output and nothing else does, so `> v7.cu` and `| grep -B10 mbarrier_init` work.
The markers by which the lab finds your lines are hidden; `--lines` shows them as comments. Needs no GPU.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

OTHER_PYTHON = "inspect_cuda: this is not the lab's Python; run `. .venv/bin/activate` first"

try:
    from tirxlab.sandbox import NoKernel, artifact_of
    from tirxlab.steps import StepError, parse_size
except ModuleNotFoundError:  # even the imports need packages of the environment
    sys.exit(OTHER_PYTHON)

ROOT = Path(__file__).resolve().parent
DEFAULT_SIZES = {1: (128, 128, 64), 2: (128, 128, 1024)}
VIEWS = ("cuda", "ptx", "sass", "regs")
_CUDA_MACRO = re.compile(r"^#define lab_src\(n\).*\n", re.MULTILINE)
_CUDA_MARKER = re.compile(r"^( *)lab_src\((\d+)\);\n", re.MULTILINE)
_PTX_MARKER = re.compile(r"^\s*// begin inline asm\n(\s*)// @src (\d+)\n\s*// end inline asm\n", re.MULTILINE)
_CUDA_BODY = re.compile(r'^extern "C" __global__ [^;]*?\{\n.*?^\}', re.MULTILINE | re.DOTALL)
_PTX_BODY = re.compile(r"^\.visible \.entry .*", re.MULTILINE | re.DOTALL)


def inspect(
    path: Path,
    step: int,
    size: tuple[int, int, int] | None,
    view: str,
    *,
    body: bool = False,
    lines: bool = False,
) -> str:
    """The text of one view of one step, built at (M, N, K) for sm_100a in a confined child.

    Raises StepError (unknown step, file or view), ValueError (a shape that does not fit), NoKernel (code that
    does not build).
    """
    if view not in VIEWS:
        raise StepError(f"there is no view {view!r}; --as takes {', '.join(VIEWS)}")
    artifact = artifact_of(path, step, size or DEFAULT_SIZES.get(step, (1024, 1024, 1024)))
    return view_of(artifact, view, path.name, body=body, lines=lines)


def view_of(artifact, view: str, file: str, *, body: bool = False, lines: bool = False) -> str:
    """The text of one view of an artifact; `file` is the name that `lines` shows."""
    if view == "cuda":
        return cuda_text(artifact.cuda, body=body, comment=file if lines else "")
    if view == "ptx":
        return ptx_text(artifact.ptx, body=body, comment=file if lines else "")
    return sass_text(artifact.cubin) if view == "sass" else resources(artifact)


def cuda_text(cuda: str, *, body: bool = False, comment: str = "") -> str:
    """CUDA without markers, or with `comment` (a file name) markers as comments; `body`: the kernel alone."""
    text = _CUDA_MACRO.sub("", cuda)
    text = _CUDA_MARKER.sub(rf"\1// {comment}:\2\n" if comment else "", text)
    found = _CUDA_BODY.search(text) if body else None
    return (found[0] if found else text).strip("\n") + "\n"


def ptx_text(ptx: str, *, body: bool = False, comment: str = "") -> str:
    """PTX without markers, with the options of `cuda_text`."""
    text = _PTX_MARKER.sub(rf"\1// {comment}:\2\n" if comment else "", ptx)
    found = _PTX_BODY.search(text) if body else None
    return (found[0] if found else text).strip("\n\0") + "\n"


def find_nvdisasm() -> Path | None:
    """NVIDIA's disassembler: from the PyPI package nvidia-cuda-nvdisasm, else on PATH, else None."""
    try:
        files = metadata.files("nvidia-cuda-nvdisasm") or []
    except metadata.PackageNotFoundError:
        files = []
    name = "nvdisasm.exe" if os.name == "nt" else "nvdisasm"
    packaged = [Path(file.locate()) for file in files if file.name == name]
    on_path = shutil.which(name)
    return next((p for p in packaged if p.exists()), Path(on_path) if on_path else None)


def sass_text(cubin: bytes) -> str:
    """The machine code; raises StepError if no disassembler is installed."""
    tool = find_nvdisasm()
    if tool is None:
        raise StepError("no disassembler here; install one: pip install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        done = subprocess.run([tool, "-c", file], capture_output=True, text=True)
    if done.returncode:
        raise StepError(f"{tool} failed: {' '.join(done.stderr.split())}")
    return done.stdout


def resources(artifact) -> str:
    """Registers, spills, launch shape, and the map of dynamic shared memory, as text."""
    rows = [
        ("arch", artifact.arch),
        ("grid, block, cluster", f"{artifact.grid}, {artifact.block}, {artifact.cluster}"),
        ("registers a thread", artifact.registers),
        ("spills", f"{artifact.spills} B"),
        ("stack", f"{artifact.stack} B"),
        ("dynamic shared memory", f"{artifact.shared_bytes} B"),
    ]
    text = [f"{name:<22} {value}" for name, value in rows]
    text += ["", f"{'shared memory':<22} {'from':>8} {'bytes':>8}  dtype    shape"]
    for name in sorted(artifact.names, key=lambda n: n.offset):
        shape = "x".join(map(str, name.shape))
        text.append(f"  {name.name:<20} {name.offset:>8} {name.size:>8}  {name.dtype:<8} {shape}")
    return "\n".join(text) + "\n"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        self.exit(2, f"inspect_cuda: {message} (see --help)\n")


def parser() -> argparse.ArgumentParser:
    """The command line, also that of `./lab inspect`."""
    made = _Parser(description="Show what the compiler made of a step, on standard output.")
    made.add_argument("step", type=int, metavar="STEP", help="1 to 10")
    made.add_argument("size", nargs="?", metavar="SIZE", help="1024 or MxNxK [1024; steps 1, 2: one tile]")
    made.add_argument("--kernels", type=Path, metavar="FILE", default=ROOT / "gemm_kernels.py")
    made.add_argument("--as", dest="view", choices=VIEWS, default="cuda", help="[cuda]")
    made.add_argument("--body", action="store_true", help="only the kernel, without the helper functions")
    made.add_argument(
        "--lines", action="store_true", help="your file and line as a comment before each statement"
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Prints one view; returns 0, 1 if the kernel does not build, or 2 for any other error, in one line."""
    options = parser().parse_args(arguments)
    try:
        size = parse_size(options.size) if options.size else None
        text = inspect(
            options.kernels, options.step, size, options.view, body=options.body, lines=options.lines
        )
    except ValueError as error:
        print(f"inspect_cuda: {error}", file=sys.stderr)
        return 1 if isinstance(error, NoKernel) else 2
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` closed it: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    if importlib.util.find_spec("tvm") is None:
        sys.exit(OTHER_PYTHON)
    raise SystemExit(main())
