"""FlashMLA's sparse decoding by its definition: each query looks at the rows of a cache of FP8 that it names.

A row of 656 bytes: 512 elements of e4m3, a float32 factor for each 128 of them, 64 of bfloat16. All 576 are
the key, the first 512 the value. A sink takes its share of the softmax and gives nothing.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch

VALUE, TILE, ROW = 512, 128, 656


def decoded(module, config: dict) -> None:
    """The library's test; its schedule of the work is not judged, what comes out is."""
    import tirx_kernels.ported.flashmla.utils._flashmla_bench as bench

    bench._import_flash_mla = lambda: SimpleNamespace(get_mla_metadata=lambda: (SimpleNamespace(), None))
    bench.run_flashmla_sparse_decode = _decoded
    module.run_test(**config)


def _decoded(case: dict, schedule) -> tuple[torch.Tensor, torch.Tensor]:
    """(outputs, logarithms of the sums as (request, head, query))."""
    config = case["config"]
    if config.extra_topk or config.have_topk_length or case["kv"].shape[-1] != ROW:
        raise NotImplementedError("a second cache, lengths and rows of 584 bytes have no reference here")
    schedule.tile_scheduler_metadata, schedule.num_splits = (
        case["tile_scheduler_metadata"],
        case["num_splits"],
    )
    rows, out, sums = _rows(case["kv"]), torch.zeros_like(case["out"]), torch.zeros_like(case["lse"])
    for b, s in torch.cartesian_prod(*(torch.arange(n) for n in out.shape[:2])).tolist():
        named = case["indices"][b, s]
        seen = rows[named[named >= 0].long()]
        scores = case["q"][b, s].double() @ seen.T * case["sm_scale"]
        total = torch.logsumexp(scores, -1)
        share = torch.sigmoid(total - case["attn_sink"].double()) if config.have_attn_sink else 1.0
        found = torch.softmax(scores, -1) @ seen[:, :VALUE]
        out[b, s] = found * torch.as_tensor(share).view(-1, 1)
        sums[b, s] = total if len(seen) else torch.inf
    return out, sums.transpose(1, 2)


def _rows(cache: torch.Tensor) -> torch.Tensor:
    """float64 (rows, 576) of all pages."""
    raw = cache.view(torch.uint8).reshape(-1, ROW)
    elements = raw[:, :VALUE].contiguous().view(torch.float8_e4m3fn).double()
    factors = raw[:, VALUE : VALUE + 16].contiguous().view(torch.float32).double()
    rest = raw[:, VALUE + 16 :].contiguous().view(torch.bfloat16).double()
    return torch.cat([elements * factors.repeat_interleave(TILE, -1), rest], -1)


TABLE = {"sparse_flashmla_decode_head64": decoded}
