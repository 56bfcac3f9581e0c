"""TVM without its graph compiler makes the same kernels, and the omitted parts can still be imported."""

import subprocess
import sys

import pytest

_CODE = """
import hashlib, sys
if {lean}:
    from tirxlab.toolchain.lean_tvm import import_tvm
    import_tvm()
    assert "tvm.relax" not in sys.modules
from instructor.solutions import gemm_kernels
from tirxlab.toolchain.build import draft
print(hashlib.sha256(draft(gemm_kernels.hgemm_v{step}(*{size}), "sm_100a").to_bytes()).hexdigest())
import tvm.relax
assert tvm.relax.Function
"""


def _draft(lean: bool, step: int, size: tuple[int, int, int]) -> str:
    code = _CODE.format(lean=lean, step=step, size=size)
    return subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True).stdout


@pytest.mark.parametrize(("step", "size"), [(1, (128, 128, 64)), (10, (1024, 768, 64))])
def test_kernels_are_the_same(step, size):
    assert _draft(True, step, size) == _draft(False, step, size) != ""


_NAMES = """
if {lean}:
    from tirxlab.toolchain.lean_tvm import import_tvm
    import_tvm()
import tvm
from tvm.ir import Op
from tvm.tirx.script.builder import ir
assert Op.get.__module__ == "tvm.ir.op" and ir._register_op_attr.__module__ == "tvm.ir.op"
assert ir._register_script_namespace_printer_names.__module__ == ir.__name__
mine = sorted(str(name) for name in Op.list_op_names() if not str(name).startswith("relax."))
print([(name, str(Op.get(name).get_attr("TScriptPrinterName"))) for name in mine])
"""


def _names(lean: bool) -> str:
    code = _NAMES.format(lean=lean)
    return subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True).stdout


def test_operators_are_printed_under_the_same_names():
    assert _names(True) == _names(False) and "'ptx.ldg32'" in _names(True)


_ERRORS = """
import sys
from importlib.abc import MetaPathFinder
raised = []

class Watching(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        api = sys.modules.get("tvm.ir._ffi_api")
        if api and hasattr(api, "GetOp") and not raised:
            raised.append("watching")
            for name in ("GetOp", "RegisterOpAttr"):
                setattr(api, name, self.watched(getattr(api, name)))
        return None

    def watched(self, function):
        def call(*args):
            try:
                return function(*args)
            except Exception:
                raised.append(args)
                raise
        return call

sys.meta_path.insert(0, Watching())
from tirxlab.toolchain.lean_tvm import import_tvm
import_tvm()
assert raised == ["watching"], raised
"""


def test_no_operator_is_looked_up_in_vain():
    """Each would be a C++ error, and the first of these costs more than all other registrations."""
    done = subprocess.run([sys.executable, "-c", _ERRORS], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
