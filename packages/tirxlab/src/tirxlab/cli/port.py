"""`./lab port FILE`: rewrite the imports of a kernel written for TVM's preview wheel, so that it runs here.

Names are looked up, not modules: every name of a `from tvm... import` that this lab has too is then imported
from `tirxlab`. The rest of the file stays as it is, byte for byte.
"""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import UserError
from tirxlab.porting import port
from tirxlab.steps import read_text


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a kernels file for the preview wheel")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="[default: in place]")
    ] = None,
    dry: Annotated[bool, typer.Option("--diff", help="only show what would change")] = False,
) -> None:
    """Make a kernel of TVM's preview wheel run here: rewrites its import lines and nothing else."""
    text = read_text(file)
    try:
        ported, left = port(text)
    except SyntaxError as error:
        raise UserError(f"{file}:{error.lineno}: {error.msg}") from None
    for line in left:
        print(f"{file.name}:{line}")
    if ported == text and (dry or not output):
        print(f"{file.name}: nothing to rewrite")
        return
    if dry:
        lines = text.splitlines(keepends=True), ported.splitlines(keepends=True)
        print("".join(difflib.unified_diff(*lines, str(file), str(output or file))), end="")
        return
    target = output or file
    target.write_text(ported, encoding="utf-8")
    print(f"wrote {target}" + (f"; {len(left)} lines above need your attention" if left else ""))
