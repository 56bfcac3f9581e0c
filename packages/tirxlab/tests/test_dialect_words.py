"""What TVM refuses in its own words, crashes on or leaves out silently is refused in the course's words."""

import numpy as np
import pytest
from kernel_text import make_kernel

from tirxlab.devices import sim
from tirxlab.dialect import KernelError
from tirxlab.steps import StepError, load_kernels
from tirxlab.toolchain.build import build

SYNC = "\n    Tx.cuda.cta_sync()"
REFUSED = {  # statement -> words of its message
    "x = A[0, 0, 0]": "A has 2 dimensions, and this names 3",
    "D[0] = A[0, 0]": "D has 2 dimensions, and this names 1",
    "x = A[None, 0]": "an index of A is a whole number or a slice, not None",
    "x = A[-1, 0]": "there is no -1",
    "x = A[:, :].T": "a buffer has no .T",
    "Tx.copy(A[::2, :], B[:, :])": "a step (2) is not possible",
    "r = Tx.alloc_local((tid,), 'float32')": "positive numbers that Python knows when it builds the kernel",
    f"if Tx.And(tid == 0):{SYNC}": "joins two conditions or more",
    f"if tid in (0, 1):{SYNC}": "write Tx.Or(x == 0, x == 1)",
    f"if tid == 0 & warp_id == 0:{SYNC}": "bind more tightly",
    f"match warp_id:\n    case 0:{SYNC}".replace("    Tx", "        Tx"): "this Python statement (match)",
    "return": "a kernel cannot return",
    f"with Tx.kernel():{SYNC}": "has one `with Tx.kernel():`",
    f"with Tx.cluster():{SYNC}\n    Tx.copy(D[:, :], A[:, :])": "is not done by a cluster",
    "x = warp_id == 0 and Tx.cuda.cta_sync()": "an instruction gives no value",
    f"if tma_shared_layout < 3:{SYNC}": "`<` compares numbers",
    f"if tma_shared_layout == 2:{SYNC}": "which is always false",
    "x = Tx.address_of(tma_shared_layout)": "not a function or a class",
    "x = Tx.ptx.fence.mbarrier_init()": "an instruction gives no value",
    "Tx.cuda.warpgroup_sync(None)": "bar_no is None",
    'Tx.cuda.printf("%d %d", tid)': "has 2 places for values, and 1 are given",
    'Tx.cuda.printf("%s", tid)': "%s does not print int32: write %d",
    "x, y = Tx.meta_var(tid * 2)": "this is one number",
    "x = tid()": "takes no parentheses",
    "for i in range(None):\n    Tx.cuda.cta_sync()": "this is None",
    f"if Tx.ptx.elect_sync():{SYNC}\nelse:{SYNC}": "needs a comparison",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_is_refused_at_its_line(statement, tmp_path):
    with pytest.raises(KernelError) as error:
        make_kernel(tmp_path, statement + "\nR[tid] = tid")
    assert REFUSED[statement] in str(error.value)
    assert error.value.text.strip() in statement


def test_a_number_as_a_condition_may_have_an_else(tmp_path):
    body = "if warp_id:\n    R[tid] = 1\nelse:\n    R[tid] = 2 if tid == 0 else 3"
    artifact = build(
        make_kernel(tmp_path, body + "\nif Tx.Or(wg_id, warp_id > 3, tid == 3):\n    R[tid] = 4")
    )
    arrays = {b.name: np.ones(b.shape, b.dtype) for b in artifact.buffers}
    assert sim.run(artifact, arrays).outputs["R"].tolist() == [2, 3, 3, 4, *[3] * 28, *[1] * 96]


def test_an_error_in_a_helper_names_its_call(tmp_path):
    helper = "@Tx.inline\ndef helper(n):\n    x = n + 'a'\n"
    with pytest.raises(KernelError, match=r"computes with text .*\(called at line \d+\)") as error:
        make_kernel(tmp_path, "helper(tid)\nR[tid] = tid", outer=helper)
    assert "x = n +" in str(error.value)


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ('Tx.Buffer("float16", (4,))', "the shape comes first"),
        ('Tx.Buffer(4, 4, "float16")', "the shape is one list"),
        ('Tx.Buffer((4,), "fp16")', "write 'float16'"),
        ('Tx.Buffer((4 / 2,), "float16")', "a fraction"),
    ],
)
def test_the_type_of_a_parameter_is_checked(parameter, words, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(
        f"from tirxlab import Tx\n\n\n@Tx.prim_func(tirx=True)\ndef k(A: {parameter}):\n    pass\n"
    )
    with pytest.raises(StepError, match=words) as error:
        load_kernels(path)
    assert str(error.value).startswith("wrong.py:5: ")
