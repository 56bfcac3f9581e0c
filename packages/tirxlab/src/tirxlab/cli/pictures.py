"""Writes pictures to files: SVG as it is, PNG by typst, which brings the fonts that a bare machine lacks."""

from pathlib import Path

from tirxlab.cli.common import UserError, write_file

SUFFIXES = (".svg", ".png")
PPI = 144  # resolution of a PNG: two pixels for each of the SVG's
_PAGE = '#set page(width: auto, height: auto, margin: 0pt)\n#image(bytes(sys.inputs.svg), format: "svg")\n'


def write_picture(path: Path, svg: str) -> None:
    """Write an SVG text as .svg or .png. UserError if it cannot be written, or for a PNG without typst."""
    write_file(path, png(svg) if path.suffix == ".png" else svg.encode())


def png(svg: str) -> bytes:
    """The picture as the bytes of a PNG."""
    try:
        import typst
    except ModuleNotFoundError:
        raise UserError(
            "a PNG is drawn by typst, which is not installed: name an .svg file, or "
            ".venv/bin/python -m pip install 'typst>=0.15,<0.16'"
        ) from None
    return typst.compile(
        _PAGE.encode(), format="png", ppi=PPI, sys_inputs={"svg": svg}, ignore_system_fonts=True
    )


def check_target(out: Path | None, suffixes: tuple[str, ...] = SUFFIXES, option: str = "--out") -> None:
    """UserError if no file of this name can be written; to be called before any work is done."""
    if out is None:
        return
    if out.suffix not in suffixes:
        *most, last = suffixes
        names = f"{', '.join(most)} or {last}" if most else last
        raise UserError(f"{option} {out}: the name must end in {names}")
    if out.is_dir() or not out.parent.is_dir():
        raise UserError(
            f"{option} {out}: {'is a folder' if out.is_dir() else f'there is no folder {out.parent}'}"
        )
