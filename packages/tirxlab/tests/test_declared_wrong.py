"""What a kernel declares, and no chip has, is refused at its line."""

from pathlib import Path

import pytest
from test_kernel_errors import SOLUTIONS

from tirxlab.steps import load_kernels
from tirxlab.toolchain.build import build

SIZE = (256, 384, 64)


@pytest.mark.parametrize(
    "old, new, words, line",
    [
        ("PIPE_DEPTH = 2", "PIPE_DEPTH = 0", "this one has 0", ""),
        ("(1 @ TLane, 1 @ TCol)", "(1 @ TCol, 1 @ TLane)", "its rows in lanes", "tmem = Tx.decl_buffer("),
        ("(128, TMEM_COLS), F32", "(TMEM_COLS, 128), F32", "not (512, 128)", "tmem = Tx.decl_buffer("),
        (", layout=TMEM_LAYOUT", "", "its rows in lanes", "tmem = Tx.decl_buffer("),
        ('alloc((1,), "uint32")', 'alloc((1,), "uint128")', "no type 'uint128'", "tmem_addr = pool.alloc("),
        ("Dreg = Tx.alloc_local((BLK_N,), F32)", "Dreg = Tx.alloc_local((BLK_N,), F16)",
         "dst is float16, src is float32; Tx.cast converts", "Tx.copy(Dreg_wg"),
        ("[SM_COUNT], parent", "[SM_COUNT, 1], parent", "give each a name of its own", "bx = Tx.cta_id("),
        ("[SM_COUNT], parent", "[SM_COUNT // 1000], parent", "grid (0, 1, 1) has no CTA", "bx = Tx.cta_id("),
    ],
)  # fmt: skip
def test_what_no_chip_has(tmp_path, old, new, words, line):
    path, text = tmp_path / "gemm_kernels.py", Path(SOLUTIONS).read_text()
    path.write_text(text.replace(old, new))
    with pytest.raises((TypeError, ValueError)) as refused:
        build(load_kernels(path).hgemm_v6(*SIZE), use_cache=False)
    assert words in str(refused.value) and str(refused.value).splitlines()[-1].strip().startswith(line)
