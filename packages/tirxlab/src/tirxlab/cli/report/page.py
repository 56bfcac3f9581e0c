"""A Page as one HTML text. jinja2 escapes every text; a content security policy admits only our script."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tirxlab.cli.report import drawings
from tirxlab.cli.report.model import Page
from tirxlab.cli.report.reading import readings, target
from tirxlab.cli.report.ring import ring_svg

ASSETS = Path(__file__).parent / "assets"
MARKS = {"good": "✓", "bad": "✗", "mixed": "!", "plain": ""}  # shown beside the colour


def render(page: Page) -> str:
    """The file's text, with style, script, data and pictures inside."""
    style, script = (_asset(name) for name in ("page.css", "timeline.js"))
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        page=page,
        style=style,
        script=script,
        policy=policy(style, script),
        mark=MARKS,
        tiles=drawings.tiles_svg,
        zoom=drawings.zoom_svg,
        roofline=drawings.roofline_svg,
        inline=inline,
        ring=ring_svg,
        target=target,
        readings=readings(page),
    )


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """The content security policy: nothing is fetched, and only this style and this script apply, so that a
    text that escaped the escaping runs nothing.
    """
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    style_hash, script_hash = hashes
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def inline(svg: str) -> str:
    """An SVG text as an image's data URL: it is drawn, but is not part of the page's document."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
