"""Nothing can move any more: who waits for what, as one finding."""

from __future__ import annotations

from ptxsim import machine_layout as ml
from ptxsim.findings import Finding, lanes_text


def explain(cluster, reporter) -> Finding:
    """The deadlock finding of a stuck cluster."""
    waits = [_describe(cluster, reporter, g, wait) for g, wait in sorted(cluster.waits.items())]
    spinning = [g for g in range(len(cluster.SP)) if cluster.SP[g, ml.SP_STATE] == ml.RUNNABLE]
    waits += [_polls(cluster, g) for g in spinning]
    first = waits[0]["text"] if waits else "no thread can run"
    rest = f"; {len(waits) - 1} more group(s) wait" if len(waits) > 1 else ""
    split = cluster.splits[next(iter(sorted(cluster.waits)), spinning[0] if spinning else 0)]
    split.row = int(cluster.SP[split.index, ml.SP_PC])
    split.mask = int(cluster.SP[split.index, ml.SP_MASK])
    where = reporter.place(split)
    return Finding("deadlock", "error", first + rest, "", where, {"waits": waits})


def _describe(cluster, reporter, g: int, wait) -> dict:
    split = cluster.splits[g]
    row = split.row
    who = (
        f"CTA {cluster.cta_ids[split.cta]} warp {split.warp % cluster.warps_per_cta} "
        f"lanes {lanes_text(int(cluster.SP[g, ml.SP_MASK]))}"
    )
    instr = cluster.program.instrs[row]
    text = f"{who} waits for {_what(cluster, reporter, wait)}"
    return {"text": text, "line": instr.src if instr else None, "kind": wait.kind, **wait.detail}


def _what(cluster, reporter, wait) -> str:
    detail = wait.detail
    if wait.kind == "mbarrier":
        rank, offset = detail["place"]
        barrier = cluster.mbarriers[detail["place"]]
        arrived = barrier.expected - barrier.pending
        missing = f", {barrier.tx} B still to come" if barrier.tx else ""
        return (
            f"{reporter.shared_name(offset)} of CTA {rank} to complete the phase of parity {detail['parity']}: it is in "
            f"phase {barrier.phase}, {arrived}/{barrier.expected} arrived{missing}"
        )
    if wait.kind == "bar":
        expected = detail["expected"] or "all threads of the CTA"
        return f"CTA barrier {detail['number']}: {detail['arrived']} threads arrived, expected {expected}"
    if wait.kind == "cluster":
        return f"the cluster barrier: {detail['arrived']} threads arrived"
    if wait.kind == "tmem-alloc":
        return f"{detail['columns']} free TMEM columns"
    if wait.kind == "collective":
        return (
            f"lanes {lanes_text(detail['members'] & ~detail['present'])} of its warp at a .sync instruction"
        )
    return f"bulk copies ({detail.get('pending')} group(s) pending)"


def _polls(cluster, g: int) -> dict:
    split = cluster.splits[g]
    instr = cluster.program.instrs[int(cluster.SP[g, ml.SP_PC])]
    text = f"CTA {cluster.cta_ids[split.cta]} warp {split.warp % cluster.warps_per_cta} polls without end"
    return {"text": text, "line": instr.src if instr else None, "kind": "poll"}
