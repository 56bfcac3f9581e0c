"""TVM asks for every outer frame with its source line, for each macro and each buffer: a third of the parse.

Both functions below do the same with the frames alone. They stand in for TVM's from the import on.
"""

import inspect
import sys
import types

from tvm.script.parser.core.parser import ScriptMacro
from tvm.tirx.script.builder import ir


def _frames(frame: types.FrameType | None):
    while frame is not None:
        yield frame
        frame = frame.f_back


def find_parser(macro: ScriptMacro):
    """The parser that is at work: the first frame whose globals hold one."""
    for frame in _frames(sys._getframe(1)):
        parser = frame.f_globals.get(ScriptMacro.parser_object_name)
        if parser is not None:
            return parser
    raise RuntimeError(f"{ScriptMacro.parser_object_name} not available")


def record_meta_resource(value, skip_frames: int = 2) -> None:
    """Note where an object of shared memory is made: the first frame outside TVM's builder."""
    scope = ir._current_meta_construction_scope()
    if scope is not None:
        outside = (f for f in _frames(sys._getframe(1)) if f.f_code.co_filename != ir._THIS_FILE)
        scope.record(value, inspect.getframeinfo(next(outside), context=1))


ScriptMacro._find_parser_def = find_parser
ir._record_meta_resource = record_meta_resource
