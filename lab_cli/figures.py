"""`./lab figures`: draw the figures of the slides from this project's runs, and build the PDFs with typst."""

from typing import Annotated

import typer

from lab_cli.common import ROOT, UserError, notes

SLIDES = ROOT / "slides"
INSTALL = "pip install typst (the project's extra `slides`)"


def run(
    slides_only: Annotated[
        bool, typer.Option("--slides-only", help="keep the figures, build the PDFs")
    ] = False,
) -> None:
    """Draw slides/figures/ and docs/steps/figures/ from simulated runs, and build the slides' two PDFs."""
    try:
        import typst
    except ModuleNotFoundError:
        raise UserError(f"the slides are built with typst, which is not installed: {INSTALL}") from None
    if not slides_only:
        draw()
    for source in sorted(SLIDES.glob("lecture*.typ")):
        pdf = str(source.with_suffix(".pdf"))
        typst.compile(str(source), output=pdf, root=str(SLIDES), ignore_system_fonts=True)
        print(f"wrote {source.with_suffix('.pdf').relative_to(ROOT)}")


def draw() -> None:
    from instructor.figures import draw_all
    from instructor.figures.pages import draw_pages

    with notes().status("") as status:
        files = draw_all(SLIDES / "figures", lambda name: status.update(f"drawing {name}"))
        print(f"wrote {len(files)} files in slides/figures")
        files = draw_pages(ROOT / "docs" / "steps" / "figures", lambda name: status.update(f"drawing {name}"))
        print(f"wrote {len(files)} files in docs/steps/figures")
