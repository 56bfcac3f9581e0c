"""The explorer of research/every on programs with an obvious answer, and a fixed slice of the comparison."""

from __future__ import annotations

import pytest

from research.every.compare import answer
from research.every.explore import explore
from research.every.programs import Program, program_of

SLICE = range(150)

ST, LD, ARRIVE = ("st", 0), ("ld", 0), ("arrive", 0)
PASSED = ("wait", 0, 0)
COPY = (("expect", 0), ("load", 0, 0))
IN_GROUPS = (("cp", 0), ("commit",), ("cp", 1), ("commit",))
OUT_IN_GROUPS = (("st", 0), ("st", 1), ("fence",), ("put", 0), ("close",), ("put", 1), ("close",))


def program(*warps, bars=(1,), meets=()) -> Program:
    return Program(tuple(tuple(steps) for steps in warps), bars, meets)


PLAIN = [  # name, program, the fault in some interleaving
    ("handed over", program([ST, ARRIVE], [PASSED, LD]), ""),
    ("not waited for", program([ST, ARRIVE], [LD]), "races"),
    ("signalled too early", program([ARRIVE, ST], [PASSED, LD]), "races"),
    ("nobody arrives", program([ST], [PASSED, LD]), "stuck"),
    ("one arrival too few", program([ST, ARRIVE], [PASSED, LD], bars=(2,)), "stuck"),
    ("either arrival will do", program([ST, ARRIVE], [ARRIVE], [PASSED, LD]), "races stuck"),
    ("copied", program([*COPY], [PASSED, LD]), ""),
    ("copied, nobody waits", program([*COPY], []), "pending"),
    ("copied twice, nobody waits", program([*COPY, ("load", 1, 0)]), "pending"),
    (
        "copied twice in a phase that is told of one",
        program([*COPY, ("load", 1, 0), PASSED, ("expect", 0), ("wait", 0, 1), ("ld", 1)]),
        "stuck",
    ),
    ("copied over a read", program([LD, *COPY], [PASSED]), ""),
    ("copied over another's read", program([*COPY, PASSED], [LD]), "races"),
    ("met", program([ST, ("sync", 0)], [("sync", 0), LD], meets=(2,)), ""),
    ("announced", program([ST, ("meet", 0)], [("sync", 0), LD], meets=(2,)), ""),
    ("announced, not awaited", program([("meet", 0), ST], [("sync", 0), LD], meets=(2,)), "races"),
    ("met alone", program([ST, ("sync", 0)], [LD], meets=(2,)), "races stuck"),
    ("flagged", program([ST, ("set", 0)], [("poll", 0), LD]), ""),
    ("counted too few", program([ST, ("add", 0)], [("add", 0)], [("count", 0, 1), LD]), "races"),
    ("sent", program([ST, ("fence",), ARRIVE], [PASSED, ("store", 0)]), ""),
    ("sent with no fence", program([ST, ARRIVE], [PASSED, ("store", 0)]), "fences"),
    ("sent, used again", program([ST, ("fence",), ("store", 0), ST]), "races"),
    ("sent, awaited, used again", program([ST, ("fence",), ("store", 0), ("drain",), ST]), ""),
    ("a fresh barrier lets parity 1 pass", program([("wait", 0, 1), ST, ARRIVE], [PASSED, LD]), ""),
    (
        "asked again, for nothing",
        program([("ld", 0)], [("wait", 0, 1), ("ld", 1), ARRIVE, ("wait", 0, 1)], bars=(2,)),
        "",
    ),
    (
        "asked again, and then relied on",
        program([ST, ARRIVE], [("wait", 0, 1), ARRIVE, ("wait", 0, 1), LD], bars=(2,)),
        "races stuck",
    ),
    (
        "its own arrival makes a phase",
        program([ARRIVE, ("wait", 0, 1), ARRIVE], [("wait", 0, 1), ARRIVE]),
        "stuck",
    ),
    ("another arrival first", program([ARRIVE], [("wait", 0, 1), ("st", 1), ARRIVE]), "stuck"),
    (
        "one left over, which nobody waits for",
        program([("sync", 0), ("meet", 0)], [("sync", 0), ("meet", 0)], [("meet", 0)], meets=(2,)),
        "",
    ),
    (
        "one left over, which may be a wait",
        program([("sync", 0)], [("sync", 0), ("meet", 0)], [("meet", 0), ("meet", 0)], meets=(2,)),
        "stuck",
    ),
    (
        "a phase missed, and the next one in its place",
        program([("wait", 0, 0)], [ARRIVE, ARRIVE], [("wait", 0, 1), ARRIVE]),
        "",
    ),
    (
        "who meets whom is luck",
        program([("st", 1), ("sync", 0)], [("sync", 0)], [("sync", 0), ("ld", 1), ("sync", 0)], meets=(2,)),
        "races stuck",
    ),
    ("set twice, read between", program([("set", 0), ST, ("set", 0)], [("poll", 0), LD]), "races"),
    ("left over", program([ST, ("meet", 0), ("meet", 0)], [("sync", 0), LD], meets=(2,)), "stuck"),
    (
        "known to be over",
        program(
            [*[("arrive", 1)] * 2, ARRIVE, ("expect", 1), ("load", 1, 1)],
            [PASSED, ("wait", 1, 0), ("ld", 1)],
            bars=(1, 1),
        ),
        "",
    ),
    ("bytes to come", program([ST, ARRIVE, ("expect", 1)], [PASSED, LD, ("wait", 1, 1)], bars=(1, 1)), ""),
    (
        "rounds by luck",
        program([ST, ("meet", 0), ("meet", 0)], [("sync", 0), ("meet", 0)], meets=(2,)),
        "stuck",
    ),
    ("written anew", program([ST, *COPY], [PASSED, LD]), ""),
    ("a phase behind", program([ARRIVE], [("wait", 0, 1)]), "stuck"),
    ("in groups, the older", program([*IN_GROUPS, ("keep", 1), LD]), ""),
    ("in groups, the younger", program([*IN_GROUPS, ("keep", 1), ("ld", 1)]), "races"),
    ("in groups, one never ended", program([("cp", 0), ("keep", 0), LD]), "races"),
    ("out in groups, the older", program([*OUT_IN_GROUPS, ("left", 1), ST]), ""),
    ("out in groups, the younger", program([*OUT_IN_GROUPS, ("left", 1), ("st", 1)]), "races"),
    ("cp.async arrives", program([("cp", 0), ("signal", 0)], [PASSED, LD]), ""),
    ("cp.async arrives too early", program([("signal", 0), ("cp", 0)], [PASSED, LD]), "races"),
    (
        "it hands on copies alone",
        program([("st", 1), ("cp", 0), ("signal", 0)], [PASSED, ("ld", 1)]),
        "races",
    ),
    (
        "any fence behind cp.async",
        program([("cp", 0), ("signal", 0)], [PASSED, ("fence",), ("store", 0)]),
        "",
    ),
    ("no fence behind cp.async", program([("cp", 0), ("signal", 0)], [PASSED, ("store", 0)]), "fences"),
    (
        "both arrive and wait, one waits twice",
        program([ARRIVE, PASSED, ARRIVE], [ARRIVE, PASSED, PASSED, ARRIVE]),
        "stuck",
    ),
    (
        "a wait that one's own arrival may let pass",
        program([ARRIVE, PASSED, ST], [ST, ARRIVE, ARRIVE]),
        "races",
    ),
    (
        "arrives, and then waits: it is there twice",
        program(
            [("sync", 0), ("meet", 0)],
            [("meet", 0), ("meet", 0)],
            [("meet", 0), ("sync", 0)],
            meets=(3,),
        ),
        "stuck",
    ),
    ("tests between two arrivals", program([ARRIVE, ST, ARRIVE], [("test", 0, 0, 0)]), "races"),
    ("looks, and reads what is there", program([ST, ("set", 0)], [("peek", 0, 0)]), ""),
    ("looks, and reads another one", program([("set", 0), ST], [("peek", 0, 0)]), "races"),
    ("tests, and reads what is there", program([ST, ARRIVE], [("test", 0, 0, 0)]), ""),
    ("tests what passes at once", program([ST, ARRIVE], [("test", 0, 1, 0)]), "races"),
    ("the first writes", program(*[[("first", 0, 0), ("sync", 0), LD]] * 2, meets=(2,)), ""),
    ("the first writes, both read", program(*[[("first", 0, 0), LD]] * 2), "races"),
    ("the later one reads", program(*[[("st", w), ("later", 0, 1 - w)] for w in (0, 1)]), ""),
    ("the later one reads, too early", program(*[[("later", 0, 1 - w), ("st", w)] for w in (0, 1)]), "races"),
]


@pytest.mark.parametrize(("made", "wrong"), [case[1:] for case in PLAIN], ids=[case[0] for case in PLAIN])
def test_the_explorer_knows_what_is_plain(made, wrong):
    truth = explore(made)
    found = [name for name in ("races", "fences", "stuck", "pending") if getattr(truth, name)]
    assert " ".join(found) == wrong


@pytest.mark.parametrize("made", [case[1] for case in PLAIN], ids=[case[0] for case in PLAIN])
def test_ptxsim_says_the_same_of_plain_programs(made):
    assert answer(made).differs == ""


@pytest.mark.parametrize("seed", SLICE)
def test_ptxsim_says_the_same(seed):
    found = answer(program_of(seed))
    assert found.differs == "", f"{found.told}\n{program_of(seed)}"
