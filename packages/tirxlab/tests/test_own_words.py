"""A hint uses the names of the student's kernel."""

import pytest

from tirxlab.devices.own_words import in_own_words

STORE = (
    "is their row (m_st) or column (n_st, d_st) taken from bx, where cbx is meant? Put `if cbx == 0:` there"
)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", STORE),
        ("m_st n_st d_st bx, cbx", STORE),
        (
            "row = Tx.meta_var(cta * 128)",
            "is their row or column taken from the number of the CTA, where the CTA's rank in its cluster is "
            "meant? Put `if cbx == 0:` there",
        ),
    ],
)
def test_names_of_the_handout_give_way_where_a_kernel_has_others(text, said):
    assert in_own_words(STORE, text, "D") == said


def test_the_output_is_called_by_its_name():
    assert (
        in_own_words("does the grid cover D (and Dsmem)?", "Dsmem", "Y")
        == "does the grid cover Y (and Dsmem)?"
    )
