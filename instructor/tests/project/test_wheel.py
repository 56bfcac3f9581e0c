"""The wheel of ptxsim, built from the repository: it runs a checked kernel without TVM and CUDA."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
KERNEL = """
import sys
import numpy as np
import ptxsim

text = '''.version 8.7
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 x) {
    .reg .b32 %t; .reg .b64 %p, %o; .reg .f32 %f;
    ld.param.u64 %p, [x];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 4;
    add.u64 %p, %p, %o;
    ld.global.f32 %f, [%p];
    add.f32 %f, %f, %f;
    st.global.f32 [%p], %f;
    ret;
}
'''
x = np.arange(32, dtype=np.float32)
result = ptxsim.load(text).launch("twice", block=(32, 1, 1), args=[x])
assert (x == 2 * np.arange(32)).all()
assert not {"tvm", "cuda", "tirxlab"} & set(sys.modules)
print(result.verdict, ptxsim.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by pip, as for a registry; skipped if there is no network to fetch setuptools from."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder)]
    done = subprocess.run([*command, str(ROOT / "packages/ptxsim")], capture_output=True, text=True)
    if done.returncode and "setuptools" in done.stdout + done.stderr:
        pytest.skip("pip cannot fetch setuptools: no network")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("ptxsim-*.whl")
    return made


def test_it_holds_every_module_and_table(wheel):
    source = ROOT / "packages/ptxsim/src"
    kinds = {".py", ".toml", ".pyi", ".c", ".h"}
    wanted = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.suffix in kinds}
    wanted = {name for name in wanted if name.startswith("ptxsim/")}
    with zipfile.ZipFile(wheel) as archive:
        assert wanted - set(archive.namelist()) == set()
        assert "ptxsim/py.typed" in archive.namelist()


def test_it_runs_a_checked_kernel_in_an_empty_environment(wheel, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    venv.create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]  # one of its own takes seconds to unpack
    install = [*pip, "install", "-q", "--no-compile", "--disable-pip-version-check", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([python, "-c", KERNEL], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdict, file = done.stdout.split()
    assert verdict == "clean" and Path(file).is_relative_to(tmp_path / "env")
