"""The instructions that research/grammar tests, and its comparison with ptxas if that is installed."""

import re
import shutil
from collections import Counter

import pytest

from research.grammar.__main__ import refused_by_ptxas, refused_here
from research.grammar.cases import BOXES, cases

SEED = 9


def test_a_seed_gives_the_same_cases_of_every_kind_and_family():
    first = cases(SEED, 1)
    assert first == cases(SEED, 1)
    kinds = Counter(one.change for one in first)
    assert set(kinds) == {"legal", "swapped", "missing", "doubled", "foreign"} and min(kinds.values()) > 300
    missing = {name.split(".")[0] for name in BOXES} - {one.family for one in first}
    assert not missing
    assert len({one.text for one in first}) == len(first)


LATER = re.compile(  # than PTX ISA 9.0, which ptxas 13.0 knows
    r"\.cp_mask|\.ignore_oob|cvt\.rn\.satfinite.*\.(e(4m3|5m2)x2\.bf16x2|e(2m1|2m3|3m2)x2\.b?f16x2) "
)
LEGAL = [one for one in cases(SEED, 1) if one.change == "legal" and not LATER.search(one.text)]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_ptxas_takes_the_same_legal_spellings():
    texts = [one.text for one in LEGAL]
    there = refused_by_ptxas(texts, "ptxas")
    assert not [text for text in texts if (text in there) != bool(refused_here(text))]
