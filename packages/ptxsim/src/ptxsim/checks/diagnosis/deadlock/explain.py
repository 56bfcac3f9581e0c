"""The finding for a deadlock: its cause, which groups wait for what, and who should have ended each wait."""

from __future__ import annotations

from ptxsim.checks.diagnosis.deadlock.cause import find_cycle
from ptxsim.checks.diagnosis.deadlock.causes import find_cause
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.events.views import Cluster
from ptxsim.report.findings import Finding, Reporter

_GROUPS, _HELPERS = 7, 2  # shown at most, so that a report fits one screen


def explain(cluster: Cluster, reporter: Reporter) -> Finding:
    """The finding for a stuck cluster. evidence: "waits", one dictionary per group; "cycle", its roles."""
    model = Model(cluster, reporter)
    if not model.waiters:
        return Finding("deadlock", "error", "no thread can run, and none waits for anything")
    reason = find_cause(model)
    held = reason.waiter
    cycle = find_cycle(model)
    lines = [reason.text]
    first = [held, *(w for w in model.waiters if w in cycle and w is not held)]
    rest = [w for w in model.waiters if w not in first]
    rest.sort(key=lambda w: (w.kind in ("bar", "cluster"), w.cta != held.cta, w.row))
    shown = [*first, *rest][:_GROUPS]
    for waiter in shown:
        lines += _text(waiter, waiter in first or waiter.kind not in ("bar", "cluster"))
    if len(model.waiters) > len(shown):
        lines.append(f"  and {len(model.waiters) - len(shown)} more waiting groups")
    if len(cycle) > 1:
        lines.append("  ring: " + " -> ".join(w.who for w in [*cycle, cycle[0]]))
    where = reporter.row_place(cluster, held.cta, held.row)
    evidence = {
        "waits": [_data(model, w) for w in model.waiters],
        "cycle": [w.who for w in cycle],
        "cause": reason.cause.id,
    }
    hint = reporter.hints.hint(reason.cause, "deadlock")
    return Finding("deadlock", "error", "\n".join(lines), hint, where, evidence)


def _text(waiter: Waiter, helpers: bool) -> list[str]:
    state = f": {waiter.state}" if waiter.state else ""
    lines = [f"  {waiter.who}, {waiter.line}: waiting for {waiter.wants}{state}"]
    if not helpers:
        return lines
    for helper in waiter.helpers[:_HELPERS]:
        lines.append(f"    <- {helper.what}; {agree(helper.what, 'it')} {helper.state}")
    if len(waiter.helpers) > _HELPERS:
        lines[-1] += f" (and {len(waiter.helpers) - _HELPERS} more)"
    if not waiter.helpers and waiter.kind == "mbarrier":
        lines.append("    <- no remaining thread can signal it")
    return lines


def _data(model: Model, waiter: Waiter) -> dict:
    """One waiting group as plain data."""
    data = {
        "who": waiter.who,
        "cta": waiter.cta,
        "line": model.program.instrs[waiter.row].src,
        "kind": waiter.kind,
        "for": waiter.wants,
        "state": waiter.state,
        "helpers": [f"{h.what}; {agree(h.what, 'it')} {h.state}" for h in waiter.helpers],
    }
    barrier = model.cluster.mbarriers.get(waiter.place)
    if barrier is not None:
        data |= {
            "barrier": model.reporter.shared_name(waiter.place[1]),
            "barrier_cta": waiter.place[0],
            "parity": waiter.detail["parity"],
            "phase": barrier.phase,
            "expected": barrier.expected,
            "arrived": barrier.expected - barrier.pending,
            "tx_missing": barrier.tx,
        }
    return data
