"""FlashMLA's sparse decoding by its definition: each query attends to the rows of an FP8 cache that it names.

A row of 656 bytes (V32): 512 elements of e4m3, a float32 factor for each 128 of them, 64 of bfloat16. All 576
are the key, the first 512 the value. A row of 576 (MODEL1): 448 of e4m3, 64 of bfloat16, key and value; the
seven powers of two of a page's rows, one for each 64 elements, follow its rows, 8 bytes a row. A second cache
has rows of its own. A sink takes its share of the softmax and contributes nothing.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch

VALUE, TILE, ROW = 512, 128, 656
SHORT, SHORT_TILE, SHORT_ROW, POWERS = 448, 64, 576, 8


def decoded(module, config: dict) -> None:
    """The library's test; judges the outputs, not the schedule of the work."""
    import tirx_kernels.ported.flashmla.utils._flashmla_bench as bench

    bench._import_flash_mla = lambda: SimpleNamespace(get_mla_metadata=lambda: (SimpleNamespace(), None))
    bench.run_flashmla_sparse_decode = _decoded
    module.run_test(**config)


def _decoded(case: dict, schedule) -> tuple[torch.Tensor, torch.Tensor]:
    """(outputs, logarithms of the sums as (request, head, query))."""
    config = case["config"]
    schedule.tile_scheduler_metadata, schedule.num_splits = (
        case["tile_scheduler_metadata"],
        case["num_splits"],
    )
    out, sums = torch.zeros_like(case["out"]), torch.zeros_like(case["lse"])
    caches = [
        (_rows(case[f"{name}kv"]), case[f"{name}indices"], case[f"{name}topk_length"], told)
        for name, told in (("", config.have_topk_length), ("extra_", config.have_extra_topk_length))
        if case[f"{name}kv"] is not None
    ]
    for b, s in torch.cartesian_prod(*(torch.arange(n) for n in out.shape[:2])).tolist():
        seen = torch.cat([_seen(*cache, b, s) for cache in caches])
        scores = case["q"][b, s].double() @ seen.T * case["sm_scale"]
        total = torch.logsumexp(scores, -1)
        share = torch.sigmoid(total - case["attn_sink"].double()) if config.have_attn_sink else 1.0
        found = torch.softmax(scores, -1) @ seen[:, :VALUE]
        out[b, s] = found * torch.as_tensor(share).view(-1, 1)
        sums[b, s] = total if len(seen) else torch.inf
    return out, sums.transpose(1, 2)


def _seen(rows, indices, lengths, told: bool, b: int, s: int) -> torch.Tensor:
    """The rows of one cache that a query names; -1 names none."""
    named = indices[b, s][: int(lengths[b])] if told else indices[b, s]
    return rows[named[named >= 0].long()]


def _short_rows(cache: torch.Tensor) -> torch.Tensor:
    """float64 (rows, 512) of all pages."""
    pages, size = cache.shape[:2]
    raw = cache.view(torch.uint8).as_strided((pages, size * (SHORT_ROW + POWERS)), (cache.stride(0), 1))
    rows = raw[:, : size * SHORT_ROW].reshape(-1, SHORT_ROW)
    powers = raw[:, size * SHORT_ROW :].reshape(-1, POWERS)[:, : SHORT // SHORT_TILE].double()
    elements = rows[:, :SHORT].contiguous().view(torch.float8_e4m3fn).double()
    rest = rows[:, SHORT:].contiguous().view(torch.bfloat16).double()
    return torch.cat([elements * torch.exp2(powers - 127).repeat_interleave(SHORT_TILE, -1), rest], -1)


def _rows(cache: torch.Tensor) -> torch.Tensor:
    """float64 (rows, 576) of all pages, or 512 a row."""
    if cache.shape[-1] != ROW:
        return _short_rows(cache)
    raw = cache.view(torch.uint8).reshape(-1, ROW)
    elements = raw[:, :VALUE].contiguous().view(torch.float8_e4m3fn).double()
    factors = raw[:, VALUE : VALUE + 16].contiguous().view(torch.float32).double()
    rest = raw[:, VALUE + 16 :].contiguous().view(torch.bfloat16).double()
    return torch.cat([elements * factors.repeat_interleave(TILE, -1), rest], -1)


TABLE = {"sparse_flashmla_decode_head64": decoded}
