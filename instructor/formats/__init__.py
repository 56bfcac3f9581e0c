"""A Grade in the formats that courses use: each is a function from a Grade to text."""

from instructor.formats.autolab import autolab
from instructor.formats.gradescope import gradescope
from instructor.formats.page import page
from instructor.formats.plain import from_plain, plain, to_json
from instructor.formats.words import words

FORMATS = {"text": words, "json": to_json, "html": page, "gradescope": gradescope, "autolab": autolab}

__all__ = ["FORMATS", "autolab", "from_plain", "gradescope", "page", "plain", "to_json", "words"]
