"""Pages of `check` and `demo`: runs, findings with their source, where D is wrong, a timeline per step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

from ptxsim import CLEAN, times_text
from tirxlab.cli.outcomes import numberless
from tirxlab.cli.report.model import Card, Cell, Grid, Link, Page, Picture, Run, SourceLine, Waits, WrongMap
from tirxlab.cli.report.reading import finding_links, step_links
from tirxlab.cli.report.timelines import run_of
from tirxlab.cli.runs import Outcome
from tirxlab.steps import parse_size, read_text, size_text
from tirxlab.version import lab_version

AROUND = 3  # lines of the source before and after the marked one
ALSO = 5  # further findings of a run that are listed
NO_TIMES = "Roofline: left out, because this command predicts no times."


def outcome_page(title: str, command: str, path: Path, outcomes: list[Outcome]) -> Page:
    """The page with everything that the outcomes hold; `with_timelines` adds the timelines."""
    text = read_text(path)
    good = [outcome for outcome in outcomes if outcome.passed]
    review = any(outcome.verdict == "review" for outcome in good)
    state = "bad" if len(good) < len(outcomes) else "mixed" if review else "good"
    lead = f"{len(good)} of {len(outcomes)} runs right"
    lead += ", some to be reviewed" if state == "mixed" else ""
    steps = list(dict.fromkeys(outcome.step for outcome in outcomes))
    return Page(
        title,
        state,
        lead,
        facts=[("command", command), ("file", path.name), *about(outcomes), *promise(outcomes)],
        grids=[scoreboard(outcomes)],
        cards=cards(outcomes, path.name, text),
        maps=wrong_maps(outcomes),
        notes=[NO_TIMES],
        links=step_links(steps),
    )


def promise(outcomes: list[Outcome]) -> list[tuple[str, str]]:
    """What `clean` means, if a run is clean."""
    return [("clean means", CLEAN)] if any(outcome.verdict == "clean" for outcome in outcomes) else []


def about(outcomes: list[Outcome]) -> list[tuple[str, str]]:
    devices = ", ".join(dict.fromkeys(outcome.device for outcome in outcomes))
    return [("device", devices), ("lab", lab_version())]


def scoreboard(outcomes: list[Outcome]) -> Grid:
    """A row per run."""
    rows = []
    for one in outcomes:
        right = {True: Cell("yes", "good"), False: Cell("no", "bad"), None: Cell("not computed", "bad")}
        states = {"clean": "good", "error": "bad", "not built": "bad"}
        verdict = Cell(one.verdict, states.get(one.verdict, "mixed"))
        rows.append(
            [
                Cell(str(one.step), number=True),
                Cell(one.size),
                Cell(str(one.order)),
                right[one.right],
                verdict,
            ]
            + [Cell(f"{one.seconds:.1f}", number=True)]
        )
    return Grid("Runs", ["step", "size", "order", "right?", "verdict", "seconds"], rows)


def worth_showing(outcomes: list[Outcome]) -> list[Outcome]:
    """Outcomes with a message worth a card, without those that differ from an earlier one only in numbers."""
    told: dict[tuple, Outcome] = {}
    for outcome in outcomes:
        if outcome.message and (not outcome.passed or outcome.findings):
            told.setdefault((outcome.step, numberless(outcome.message)), outcome)
    return list(told.values())


def cards(outcomes: list[Outcome], file: str, text: str) -> list[Card]:
    made: list[Card] = []
    for outcome in worth_showing(outcomes):
        where = f"step {outcome.step} at {outcome.size}, order {outcome.order}"
        made += finding_cards(outcome, where, file, text)
        if outcome.verdict == "not built" or not (outcome.findings or outcome.mismatch):
            line = re.search(rf"{re.escape(file)}:(\d+)", outcome.message)
            source = excerpt(text, int(line[1])) if line else []
            kind = outcome.verdict if outcome.verdict == "not built" else "wrong"
            made.append(Card(where, kind, "", outcome.message, file=file, source=source))
        if outcome.mismatch:
            message = outcome.mismatch.splitlines()[0] if outcome.wrong else outcome.mismatch
            links = [Link("Where D is wrong", "#wrong")] if outcome.wrong else []
            links += finding_links("")
            made.append(Card(where, "wrong result", "", message, links=links))
    return made


def finding_cards(outcome: Outcome, where: str, file: str, text: str) -> Iterable[Card]:
    """Cards as on the terminal: after an error, one finding in full and the others in one line each."""
    told = outcome.findings[:1] if outcome.verdict == "error" else outcome.findings
    for number, finding in enumerate(told):
        times = times_text(finding["kind"], finding["count"])
        line = finding["where"].get("line")
        sentence, line_end, more = finding["message"].partition("\n")
        message = sentence + times + line_end + more
        card = Card(where, finding["severity"], finding["kind"], message, finding["hint"])
        card.file, card.source = file, excerpt(text, line) if line else []
        card.links, card.ring = finding_links(finding["kind"]), ring(finding["evidence"])
        if number == len(told) - 1:
            card.also = also(outcome.findings[len(told) :])
        yield card


def ring(evidence: dict) -> list[Waits]:
    """The cycle of waits, from the evidence of a deadlock; [] if there is no cycle."""
    groups = {waits["who"]: waits for waits in reversed(evidence.get("waits", []))}
    found = [groups[who] for who in evidence.get("cycle", []) if who in groups]
    return [Waits(one["who"], one["line"], one["for"], one["state"]) for one in found]


def also(findings: list[dict]) -> list[str]:
    lines = []
    for finding in findings[:ALSO]:
        line = finding["where"].get("line")
        head = finding["message"].split("\n")[0]
        lines.append(f"{finding['kind']}: {head}" + (f" (line {line})" if line else ""))
    more = len(findings) - len(lines)
    return lines + ([f"and {more} more: --json shows all"] if more > 0 else [])


def excerpt(text: str, line: int) -> list[SourceLine]:
    """A line of the student's file with those around it, without their common indentation."""
    first = max(1, line - AROUND)
    around = dedent("\n".join(text.splitlines()[first - 1 : line + AROUND]))
    return [SourceLine(n, said, n == line) for n, said in enumerate(around.splitlines(), first)]


def wrong_maps(outcomes: list[Outcome]) -> list[WrongMap]:
    """Maps for those runs worth showing that left wrong elements."""
    return [
        WrongMap(f"step {one.step} at {one.size}, order {one.order}", one.wrong, one.mismatch.splitlines())
        for one in worth_showing(outcomes)
        if one.wrong
    ]


# ---- timelines ----


def with_timelines(page: Page, path: Path, outcomes: list[Outcome]) -> None:
    """Records the first cluster of each step, at a size that failed or at the one of `./lab trace`, and adds
    its timeline and structure to the page. A step that is not built, or that ran on a GPU, has none.
    """
    from tirxlab.sandbox import Builder

    text = read_text(path)
    simulated = [outcome for outcome in outcomes if outcome.device == "sim"]
    if not simulated:
        page.notes.append("Timelines: left out, because they are drawn from simulated runs.")
        return
    with Builder(text, path.name) as builder:
        for step in dict.fromkeys(outcome.step for outcome in simulated):
            mine = [outcome for outcome in simulated if outcome.step == step]
            if any(outcome.verdict == "not built" for outcome in mine):
                page.notes.append(f"Timeline of step {step}: left out, because the step is not built.")
                continue
            run, picture = step_timeline(builder, step, mine, text)
            page.runs += [run] if run else []
            page.pictures += [picture] if picture else []
            page.notes += [] if run else [f"Timeline of step {step}: left out, because it could not run."]


def step_timeline(
    builder, step: int, outcomes: list[Outcome], text: str
) -> tuple[Run | None, Picture | None]:
    """(the timeline, None if the kernel cannot run; its structure, None unless it runs to its end)."""
    import utils
    from tirxlab.cli.trace_run import SIZE, SIZES, ctas
    from tirxlab.devices import sim

    failed = next((outcome for outcome in outcomes if not outcome.passed), None)
    size = parse_size(failed.size if failed else SIZES.get(step, SIZE))
    order = failed.order if failed else "program"
    artifact = builder.build(step, size).artifact
    if artifact is None:
        return None, None
    arrays = utils.prepare_data(*size, seed=0, device="sim")
    done = sim.run(artifact, arrays, order=order, trace=True, clusters=1)
    if not done.ran:
        return None, None
    title = f"step {step} at {size_text(size)}, {ctas(done)}"
    run = run_of(done.trace, title, text)
    run.open = failed is not None
    return run, structure(artifact, done.trace, step) if done.trace.finished else None


def structure(artifact, timeline, step: int) -> Picture:
    """Shared memory, TMEM columns, roles and barriers, as `./lab show` draws them."""
    from tirxlab.explain.picture import draw, facts

    found = facts.structure(artifact, timeline)
    panels = [
        draw.memory_panel(found.memory, found.shared_bytes),
        draw.tmem_panel(found),
        draw.barrier_panel(found),
    ]
    title = f"Structure of step {step}"
    barriers = ", ".join(dict.fromkeys(barrier.name for barrier in found.barriers))
    alt = f"{title}: {found.shared_bytes} B of shared memory; barriers {barriers}"
    return Picture(title, alt, draw.page(title, panels))
