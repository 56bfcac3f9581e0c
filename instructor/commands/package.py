"""`./lab package gradescope|autolab`: make the file that is uploaded to the service."""

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Annotated

import typer

from instructor.commands.hidden import warn_of_a_known_salt
from tirxlab.cli.common import ROOT, UserError, output, write_file

NEEDED = (
    "lab",
    "instructor",
    "packages/ptxsim/pyproject.toml",
    "packages/ptxsim/README.md",
    "packages/ptxsim/src",
    "packages/tirxlab/pyproject.toml",
    "packages/tirxlab/README.md",
    "packages/tirxlab/src",
    "utils.py",
    "inspect_cuda.py",
    "pyproject.toml",
)
LEFT_OUT: tuple[str, ...] = (
    "instructor/exploits",
    "instructor/figures",
    "instructor/lectures",
    "instructor/services",
)
LEFT_OUT += ("instructor/tests", "instructor/bench")
SERVICES = ROOT / "instructor" / "services"


def run(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="gradescope or autolab")],
    out: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="[gradescope.zip, autolab.tar]")
    ] = None,
) -> None:
    """Pack the autograder: a zip to upload to Gradescope, or Autolab's Makefile and autograde.tar."""
    makers = {"gradescope": gradescope, "autolab": autolab}
    if service not in makers:
        raise UserError(f"{service}: it is one of {', '.join(makers)}")
    warn_of_a_known_salt()
    target = out or Path(f"{service}.{'zip' if service == 'gradescope' else 'tar'}")
    write_file(target, makers[service]())
    output().print(f"wrote {target}; docs/instructors.md says what to do with it", markup=False)


def files() -> dict[str, Path]:
    """Path in the package -> file, for all that grading needs."""
    found = {}
    for name in NEEDED:
        paths = [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*"))
        for path in paths:
            inside = path.relative_to(ROOT).as_posix()
            left_out = inside.startswith(LEFT_OUT) or "__pycache__" in path.parts
            if path.is_file() and not left_out and not path.match("instructor/hidden.old*"):
                found[inside] = path
    return found


def gradescope() -> bytes:
    """A zip of the lab in source/, as Gradescope unpacks it, with setup.sh and run_autograder."""
    scripts = {
        "setup.sh": SERVICES / "gradescope_setup.sh",
        "run_autograder": SERVICES / "gradescope_run.sh",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in {**files(), **scripts}.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = (0o755 if name == "lab" or name in scripts else 0o644) << 16
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def autolab() -> bytes:
    """A tar of Makefile and autograde.tar, the two files that Autolab asks for."""
    inner = _tar({f"autograde/{name}": path.read_bytes() for name, path in files().items()})
    return _tar({"Makefile": (SERVICES / "autolab_Makefile").read_bytes(), "autograde.tar": inner})


def _tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755 if name.endswith("/lab") else 0o644
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()
