"""Replacements for TVM functions that look up every outer frame with its source line.

TVM calls them for each macro, buffer and function that it parses, which takes a third of a build. These give
the same result from the frames alone.
from the import on.
"""

import inspect
import sys
import types

from tvm.script.parser.core.parser import ScriptMacro
from tvm.tirx.script.builder import ir
from tvm.tirx.script.parser import entry


def _frames(frame: types.FrameType | None):
    while frame is not None:
        yield frame
        frame = frame.f_back


class Frame:
    """A frame as inspect.stack() gives it; its file and line are looked up only when they are asked for."""

    def __init__(self, frame: types.FrameType):
        self.frame = frame

    def __getattr__(self, name: str):
        return getattr(inspect.getframeinfo(self.frame, context=1), name)


class Inspect(types.ModuleType):
    """The module `inspect` with another stack()."""

    def __getattr__(self, name: str):
        return getattr(inspect, name)

    @staticmethod
    def stack() -> list[Frame]:
        return outer_frames(2)


def outer_frames(skip: int = 1) -> list[Frame]:
    """The frames from the caller's outwards, the innermost first."""
    return list(map(Frame, _frames(sys._getframe(skip))))


def find_parser(macro: ScriptMacro):
    """The parser at work: the one in the globals of the innermost frame that has one."""
    for frame in _frames(sys._getframe(1)):
        parser = frame.f_globals.get(ScriptMacro.parser_object_name)
        if parser is not None:
            return parser
    raise RuntimeError(f"{ScriptMacro.parser_object_name} not available")


def record_meta_resource(value, skip_frames: int = 2) -> None:
    """Record where an object of shared memory is made: the innermost frame outside TVM's builder."""
    scope = ir._current_meta_construction_scope()
    if scope is not None:
        outside = (f for f in _frames(sys._getframe(1)) if f.f_code.co_filename != ir._THIS_FILE)
        scope.record(value, inspect.getframeinfo(next(outside), context=1))


ScriptMacro._find_parser_def = find_parser
ir._record_meta_resource = record_meta_resource
entry.inspect = Inspect("inspect")
