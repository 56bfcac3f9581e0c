"""Slips that were vague or astray when their list was run blind, and whose cause is reported now."""

from __future__ import annotations

import functools

import parked
import pytest

from research.advice.mistakes import Mistake
from research.advice.slips import slips
from research.advice.trials import row_of
from research.mutation.sources import SOURCES
from tirxlab.checkout import ROOT

TOLD = {  # words that identify the slip -> the cause of the first finding
    "one lane of the MMA warp waits and another multiplies, and": "lanes-apart",
    "the threads clear tensor memory behind the barrier that the first MMA comes after": "cleared-late",
    "a warp of its own stores D, is told when Dsmem is complete, and tells nobody": "phase-again",
    "the ring is filled and refilled, and no drain behind the loop": "no-mma",
    "each thread of CTA 0 hands tensor memory back for that of CTA 1 too": "arrives-alone",
    "the MMA warp of CTA 1 multiplies nothing and yet waits at its own barriers": "both-multiply",
    "in place of the barrier behind the K loop all threads wait at the MMA's": "skips-phases",
    "each half of B is sent to both CTAs by multicast, to one and the same place": "sent-by-both",
    "each warp reads 32 columns of its own, though it reaches its own 32 rows": "columns-of-a-warp",
    "one warp multiplies for both consumers, and hands the stage back between": "early-commit",
    "the loading role stands under no test of the warpgroup: warp 3 of the write-back": "role-twice",
    "the columns of D are still those of one CTA's tile: the pair's tiles": "tiles-overlap",
    "the MMA warp runs in the first CTA of the grid, not in the first of each": "silent-here",
    "the rank in the pair is reckoned from the CTA's number, and nothing asks": "no-pair",
    "the store has slipped out of the loop over tiles: Dsmem is stored once": "stores-past",
    "the scheduler is told that there are as many columns of tiles as K tiles": "first-tiles",
    "A and B have a barrier each in one array, B's is the one behind A's": "elements-meet",
    "each CTA of the pair hands its tensor memory back at a slot of its own": "not-free",
    "one thread of the first write-back stores both consumers' parts of Dsmem": "other-group",
    "the loop behind the K loop empties all stages of the ring, also those that": "silent-rest",
    "the loads ahead move the MMA's own stage on, which comes back to 0": "silent-slot",
    "each CTA's loads have slots of their own in CTA 0, announced there": "slot",
    "the loop ends where the loads do, and the loop behind it that empties the ring": "out-of-turn",
    "in place of the barrier behind the K loop the other warps follow the MMA's": "lapped",
    "the first tile passes by the wait for tensor memory, and the state begins": "fresh-late",
    "all barriers lie in one array, the MMA's in front: the loads report": "misrouted",
    "each thread clears its rows of Asmem and Bsmem to begin with, and the thread": "cleared-unordered",
    "the depths of mma2tma and mma2ld are exchanged: the stages come back": "outside-array",
    "the store adds the tile to what D holds, as where K is split among CTAs": "adds-to-nothing",
    "a warp of its own loads and waits for the MMAs, the one that issues them no": "ring-short",
    "the two halves of B's rows have an MMA each, and the second one always adds": "accumulate-part",
    "the threads copy by cp.async and close the group, and nobody waits for it": "no-wait-at-all",
    "the loads of CTA 1 begin as a consumer's, because CTA 0 leads the pair": "nobody-starts",
    "the numbers of A and of B are multiplied in the bytes, not added": "bytes-announced",
    "the rows of tiles lack their parentheses, M // CTA_GROUP * BLK_M": "endless-outside",
    "Dsmem is drawn from the start of the pool again, over the stages": "one-memory",
    "only the last MMA is waited for, with the phase of its K tile": "phase-of-many",
    "the load of the next K tile leaves between the wait for this one's": "loaded-too-soon",
    "tensor memory has two products, and the MMAs' columns go by the state's": "other-columns",
    "the test for the last chunk is left out: tensor memory is handed back": "answers-more",
    "the loading thread waits for A before B's load leaves": "waits-first",
    "next_tile stands at the head of the loop: each CTA leaves out its first": "first-left-out",
    "the store is waited for at the barrier of the loads, to which a store": "awaited-elsewhere",
    "the wait for tensor memory is taken for that of the first K tile": "product-unwaited",
    "every CTA takes as many tiles, their number divided by that of the CTAs and": "tiles-too-many",
    "K tiles are loaded in pairs into two buffers, each load arrives at the one": "own-twice",
    "each tile is stored in the next turn, beside that turn's loads, and behind": "last-left-out",
    "the columns of D begin at the CTA's own rows of B: those of CTA 1 lie half": "stores-diagonal",
    "in place of the CTA barrier between the copies and the MMA lane 0 of each": "lane-for-warp",
    "tensor memory is waited for whenever the ring comes back to stage 0, not at": "uneven",
    "the warps take turns in loading and multiplying, by the column of the tile": "role-by-turns",
    "the product and its return are the two slots of one array of barriers": "commit-for-threads",
    "the threads that write back hand the stages back too, all of the ring": "unused-third",
    "the second MMA warp begins one stage on, to keep out of the first one's way": "skips-element",
    "two warps multiply the even and the odd K tiles into the same columns: MMAs": "role-in-two-warps",
    "the product and its return take turns on one barrier, whose phases are the": "both-ways",
    "tensor memory is taken for one of the whole grid: its first CTA alone": "own-alloc",
    "the phase lies in shared memory, one word for the CTA, and each of its": "shared-word",
    "the leader of the pair is named by its number in the grid, where its rank": "no-rank",
    "the loading warp loads the K tile one ring ahead, as in the loop of step 5": "useless-loads",
    "each turn loads the next K tile into the next stage, as with a double": "loaded-again",
    "a warp of its own refills the ring, and its phase of the MMA's barrier": "lapped",
    "each slot of the product's barriers counts a commit of both consumers": "partial",
    "one barrier stands for a K tile and counts its two arrivals": "own-behind",
    "Dsmem has two parts by turns, and as there are two, two stores may be": "groups-allowed",
    "the states of loads and MMAs are as deep as a tile has K tiles": "outside-array",
    "the number of the tile is a word of shared memory that one thread moves": "word-moves-on",
    "the chunks of the tile are thought to be shared out to the CTAs by turns": "parts-apart",
    "the rows go through Asmem in two halves of the columns, to write D in full": "written-again",
    "each barrier is thought to have to be armed for its phase, that of the MMA": "several-lines",
    "the write-backs go down the rows of one tile of 128 rows, 64 each": "boxes-overlap",
    "messages to the other CTA are thought to be dear, so one thread of CTA 1": "arrives-alone",
    "a warp of each CTA waits for its loads and passes them on to CTA 0, and its": "fresh",
    "the number of the K tile is a variable that the issuing thread counts on": "left-loop",
    "each warp's elected thread stores the 32 rows of its warp, and only the place": "same-tile-of-warps",
    "room for a further load is asked for at the loads' own barrier with the phase": "self-wait",
    "the read of tensor memory is executed by a warp together, and so one": "tcgen05-fence",
    "the MMA's barrier is taken for one at which the threads meet: all of": "commit-uncounted",
    "tensor memory is handed back at the slot with the CTA's rank, not at": "slot-by-cta",
    "the copies are handed to the MMA by an mbarrier in place of the CTA's, at": "warp-left-out",
    "the fence in front of the MMA is left out for a tile's first K tile": "tcgen05-fence",
    "only the last write-back hands tensor memory back, as the last thread": "slot-of-others",
    "the scheduler starts from the number of the CTA and not of its cluster": "cluster-parted",
}


# Causes that these tests of ptxsim show, too, each on a program of a few lines: their slips are slow.
SHOWN = {
    "arrives-alone": "checks/test_handed_for_warp.py",
    "bytes-announced": "checks/test_multicast_ring.py",
    "first-left-out": "checks/test_both_ways.py",
    "first-tiles": "checks/test_left_blocks.py",
    "fresh-late": "checks/test_first_rounds.py",
    "lane-for-warp": "checks/test_one_lane_arrives.py",
    "last-left-out": "checks/test_both_ways.py",
    "no-rank": "units/test_mapa.py",
    "no-wait-at-all": "checks/test_one_lane_arrives.py",
    "nobody-starts": "checks/test_ring_causes.py",
    "not-free": "checks/test_handed_back.py",
    "partial": "checks/test_ring_causes.py",
    "several-lines": "checks/test_first_causes.py",
    "shared-word": "checks/test_variable_races.py",
    "tiles-too-many": "checks/test_severity_by_evidence.py",
    "unused-third": "checks/test_both_ways.py",
}


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    parked.use(monkeypatch)


@functools.cache
def planted() -> list[Mistake]:
    return [slip for source in SOURCES for slip in slips(source, tuple(TOLD))]


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=[pytest.mark.slow] * (cause in SHOWN), id=what)
        for what, cause in TOLD.items()
    ],
)
def test_the_first_finding_names_the_cause(what):
    slip = next(slip for slip in planted() if slip.what.startswith(what))
    row = row_of(slip, wall=0, briefly=True)
    assert row["findings"][0]["evidence"]["cause"] == TOLD[what], row["message"]


def test_what_is_shown_elsewhere_is_named_there():
    tests = ROOT / "packages/ptxsim/tests"
    assert [cause for cause, file in SHOWN.items() if f'"{cause}"' not in (tests / file).read_text()] == []
