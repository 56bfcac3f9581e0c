"""Listeners read records: none inspects the modifiers of an instruction when an event reaches it."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptxsim
from ptxsim.events.bus import EVENTS

SOURCE = Path(ptxsim.__file__).parent
ROOMS = ("checks", "trace", "timing", "grid", "report", "causes")
BEFORE_A_RUN = {"start"}  # a program may be inspected once, before it runs


@functools.cache
def listeners() -> tuple[tuple[str, ast.ClassDef], ...]:
    found = []
    for room in ROOMS:
        for file in sorted((SOURCE / room).rglob("*.py")):
            for node in classes(ast.parse(file.read_text())):
                methods = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
                if methods & set(EVENTS) - BEFORE_A_RUN:
                    found.append((f"{file.relative_to(SOURCE)}:{node.name}", node))
    return tuple(found)


def classes(node: ast.AST) -> Iterator[ast.ClassDef]:
    """The classes of a module, also in functions and branches; expressions,
    most of a module, contain none.
    """
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.ClassDef):
            yield one
        if isinstance(one, ast.stmt | ast.excepthandler | ast.match_case):
            yield from classes(one)


def decodes(handler: ast.AST) -> list[str]:
    """The places where a handler inspects an instruction: its modifiers, operands, or which one it is."""
    return [
        n.attr for n in ast.walk(handler) if isinstance(n, ast.Attribute) and n.attr in ("mods", "operands")
    ]


@pytest.mark.parametrize(
    "name, listener", listeners(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_listener_decodes_no_instruction(name, listener):
    handlers = [f for f in listener.body if isinstance(f, ast.FunctionDef) and f.name in EVENTS]
    assert {f.name: decodes(f) for f in handlers if f.name not in BEFORE_A_RUN and decodes(f)} == {}


def test_decoding_is_noticed():
    handler = ast.parse("def fence(self, cluster, split, fence):\n    return 'proxy' in split.instr.mods")
    assert decodes(handler) == ["mods"]


def test_there_are_listeners():
    assert len(listeners()) > 20
