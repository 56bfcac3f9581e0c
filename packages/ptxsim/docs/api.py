"""Writes packages/ptxsim/docs/api.md, the reference for users, from signatures and docstrings.

    python packages/ptxsim/docs/api.py [--check]

--check exits 1 if the page is not up to date.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().with_name("api.md")
SHOWN = {"ptxsim.plugins.pytest_plugin": ["Launcher"], "ptxsim.plugins.session": ["Session"]}  # no __all__
MODULES = (
    *("ptxsim", "ptxsim.tracing", "ptxsim.forecasting", "ptxsim.layouts", "ptxsim.rendering"),
    *SHOWN,
)  # ptxsim.observing is for who knows the machine: its source says more
_FIELD = re.compile(r"    \w+: .*")
_QUOTED = re.compile(r"(: |-> )'([^']*)'")  # annotations, which inspect gives in quotes
HEAD = """# Reference of ptxsim

Written by `packages/ptxsim/docs/api.py` from signatures and docstrings. What is not here may change.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(part for name in MODULES for part in module_text(name))])


def module_text(name: str) -> list[str]:
    """A module: its docstring, then its names; constants in one line."""
    module = importlib.import_module(name)
    named = {n: getattr(module, n) for n in sorted(SHOWN.get(name) or module.__all__, key=str.casefold)}
    values = [n for n, value in named.items() if not callable(value)]
    parts = [f"## `{name}`\n", inspect.cleandoc(module.__doc__ or "") + "\n"]
    if values:
        parts.append(f"Values: {', '.join(f'`{n}`' for n in values)}.\n")
    for n, value in named.items():
        if callable(value):
            parts += thing_text(f"{name}.{n}", value, "###")
    return parts


def thing_text(name: str, thing, level: str) -> list[str]:
    """A function or class under a heading; of a class its fields and public methods too."""
    parts = [f"{level} `{name}`\n", f"```python\n{heading(name.rpartition('.')[2], thing)}\n```\n"]
    told = own_doc(thing)
    if told:
        parts.append(told + "\n")
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        for method, value in vars(thing).items():
            if not method.startswith("_") and inspect.isfunction(value) and value.__doc__:
                parts += thing_text(f"{name.rpartition('.')[2]}.{method}", value, "####")
    return parts


def heading(name: str, thing) -> str:
    """`load(ptx: str | bytes) -> LoadedModule`; a dataclass with its fields."""
    if dataclasses.is_dataclass(thing):
        lines = inspect.getsource(thing).split("    def ")[0].splitlines()
        return "\n".join([f"class {name}:", *(line for line in lines if _FIELD.fullmatch(line))])
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = ""
    unquoted = _QUOTED.sub(r"\1\2", signature)
    return f"{'class ' if inspect.isclass(thing) else ''}{name}{unquoted}"


def own_doc(thing) -> str:
    """Its docstring; not the one that dataclasses make up."""
    told = thing.__doc__ or ""
    return "" if inspect.isclass(thing) and told.startswith(thing.__name__ + "(") else inspect.cleandoc(told)


def main() -> int:
    new = page()
    if "--check" in sys.argv:
        old = not PAGE.exists() or PAGE.read_text() != new
        if old:
            print("api.md is old: run python packages/ptxsim/docs/api.py", file=sys.stderr)
        return int(old)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
