"""A step whose code fails only at a hidden size costs that step, and no other step of the same file."""

import pytest
from kernel_variants import REFERENCE

from instructor.autograder.grading import Options, grade
from instructor.autograder.plan import Hidden
from instructor.autograder.submission import Submission
from tirxlab.sandbox import Limits
from tirxlab.steps import sections

PARTS = sections(REFERENCE)
HIDDEN = Hidden("salt", 0, {2: ((128, 128, 1216),), 3: ((256, 384, 1216),)})
WAYS = {  # what step 3's code does there; step 2 is built after it
    "exit": "import os\nos._exit(3)",
    "signal": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos._exit(1)",
    "memory": "x = bytearray(1 << 32)",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\nf = lambda x: max([x], key=f)\nf(1)",
    "endless": "while True: pass",
    "fork": "import os\nwhile True: os.fork()",
    "process": "import os\nif os.fork() == 0:\n    while True: pass\nreturn None",
    "files": "import os\nos.unlink('gemm_kernels.py')\nopen('x', 'wb').write(bytes(60 << 20))\nreturn None",
    "limit": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nreturn None",
    "modules": "import sys\nsys.modules.clear()\nreturn None",
    "kernel": "import tirxlab.toolchain.build as lab\nlab._lower = None\nreturn None",
}
QUICK = {"exit", "modules"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=() if way in QUICK else pytest.mark.slow) for way in WAYS]
)
def test_a_step_that_goes_wrong_at_a_hidden_size_costs_itself(way):
    bad = "".join(f"        {line}\n" for line in WAYS[way].splitlines())
    right = PARTS[3].replace("def hgemm_v3(", "def right(")
    there = f"if (M, N, K) == {HIDDEN.sizes[3][0]}"
    step = f"def hgemm_v3(M, N, K):\n    {there}:\n{bad}    return right(M, N, K)\n\n\n"
    text = f"{PARTS[0]}\n{PARTS[2]}\n{right}\n{step}"
    made = grade(Submission("x.py", text), Options(steps=(2, 3), hidden=HIDDEN, build=Limits(seconds=8)))
    honest, other = made.steps
    assert honest.earned == honest.possible, honest.hints
    assert other.earned == 0 and other.state == "wrong" and "keeps to itself" in other.hints[0]
