"""The default sizes show bugs that 1024x1024x1024 hides, where no CTA ever gets a second tile."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tirxlab.steps import sections

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = ROOT / "instructor" / "solutions" / "gemm_kernels.py"
WAIT = r"^( *)ld2mma\.wait\(0, ld_phase\.phase\)\n"
# Mistakes in step 7: (name, [(pattern, replacement)], words of the report).
SWAP = [(r"(num_m_tiles)=M // BLK_M", r"\1=N // BLK_N"), (r"(num_n_tiles)=N // BLK_N", r"\1=M // BLK_M")]
MUTANTS = [
    ("ld2mma dropped", [(WAIT, "")], "error: "),
    ("phase reset for each tile", [(WAIT, r"\g<0>\1mma_phase.init(is_producer=False)\n")], "error: deadlock"),
    ("M and N swapped in the scheduler", SWAP, "never written"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "words"), [m[1:] for m in MUTANTS], ids=[m[0] for m in MUTANTS])
def test_the_default_tests_fail(tmp_path, changes, words):
    parts = sections(SOLUTIONS.read_text())
    for pattern, replacement in changes:
        parts[7], count = re.subn(pattern, replacement, parts[7], flags=re.MULTILINE)
        assert count == 1, pattern
    path = tmp_path / "gemm_kernels.py"
    path.write_text("".join(parts.values()))
    command = [sys.executable, "-m", "pytest", "tests/test_step07.py", "-k", "result", "--kernels", str(path)]
    done = subprocess.run(
        [*command, "--device", "sim", "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1 and words in done.stdout, done.stdout
    assert "FAILED tests/test_step07.py::test_result[1408x384x1088]" in done.stdout
