"""The fixture `ptxsim`: clean launches pass, others fail with their findings, in every requested order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import ptxsim

TESTS = '''
import numpy as np

STORE = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %p; .reg .b32 %t;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; ADDRESS
  st.global.u32 [%p], %t; ret;
}
"""


def test_clean(ptxsim):
    out = np.zeros(1, np.uint32)
    ptxsim.launch(STORE.replace("ADDRESS", ""), "k", args=[out])
    assert out[0] == 0 and ptxsim.results


def test_outside(ptxsim):
    ptxsim.launch(STORE.replace("ADDRESS", "add.u64 %p, %p, 4;"), "k", args=[np.zeros(1, np.uint32)])
'''


def run(folder: Path, *options: str) -> str:
    (folder / "test_kernels.py").write_text(TESTS)
    return run_pytest(folder, "-q", *options, "test_kernels.py")


def run_pytest(folder: Path, *options: str) -> str:
    environment = os.environ | {
        "PYTHONPATH": str(Path(ptxsim.__file__).resolve().parents[1]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # an installed ptxsim registers the plugin itself
    }
    command = [sys.executable, "-m", "pytest", "-p", "ptxsim.plugins.pytest_plugin", "-p", "no:cacheprovider"]
    ran = subprocess.run([*command, *options], cwd=folder, env=environment, capture_output=True, text=True)
    return ran.stdout + ran.stderr


ADD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 p) {
  .reg .b64 %p, %o; .reg .b32 %t; .reg .f32 %x;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o;
  ld.global.f32 %x, [%p]; add.f32 %x, %x, 0f3F800000; st.global.f32 [%p], %x; ret;
}
"""


def test_the_hook_and_the_test_of_the_page_work_as_they_stand(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "exec.md").read_text()
    name, text = re.search(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL).groups()
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text)
    (tmp_path / "add.ptx").write_text(ADD)
    command, *options = re.search(r"entry: (.*)", page)[1].split()
    assert command == "pytest" and "2 passed" in run_pytest(tmp_path, *options)


def test_each_order_is_a_test_and_findings_are_told(tmp_path):
    told = run(tmp_path, "--ptxsim-orders", "program,adverse,7")
    assert "3 failed, 3 passed" in told
    assert "k is error in order adverse:" in told and "out-of-bounds" in told
    assert "test_outside[order-7]" in told


def test_an_order_that_does_not_exist(tmp_path):
    told = run(tmp_path, "--ptxsim-orders", "backwards")
    assert "(got 'backwards')" in told and len(told.splitlines()) == 2


BAD = """
def test_no_file(ptxsim):
    ptxsim.launch("none.ptx", "add")
def test_no_kernel(ptxsim):
    ptxsim.launch("add.ptx", "sub")
def test_no_kind(ptxsim):
    ptxsim.launch("add.ptx", "add", allow="race")
"""


def test_a_file_beside_the_test_and_calls_that_are_wrong_are_told_at_their_line(tmp_path):
    for name, text in {"add.ptx": ADD, "test_bad.py": BAD}.items():
        (tmp_path / "kernels").mkdir(exist_ok=True)
        (tmp_path / "kernels" / name).write_text(text)
    told = run_pytest(tmp_path, "-q", "kernels")
    assert "3 failed" in told and "no kernel named sub" in told and "pytest_plugin.py" not in told
