"""References for MSA's block-sparse attention: its two schedules, the attention of a block, and their sum.

A row of the schedule is a block of keys of one sequence; it lists the queries that attend to it. Each query
has one partial result per block, in slots of its own; partial outputs are normalised, and each has the
logarithm of its sum of exponentials. The order of their columns is a contract between two of the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

SLOT = 24  # bits below a slot: the number of the query within its sequence
PARTIAL = {"rtol": 2e-2, "atol": 2e-2}  # allowed for NVFP4 partial results against bfloat16
COMBINED = {"rtol": 2**-7, "atol": 1e-4}  # a bfloat16
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def rows_of(lengths: list[int], block: int) -> list[tuple[int, int]]:
    """(sequence, block) of each row: first every sequence's first block, then the second ones, and so on."""
    most = max(-(-length // block) for length in lengths)
    return [(b, at) for at in range(most) for b, length in enumerate(lengths) if at * block < length]


def schedule(module, config: dict) -> None:
    """A work item for each `target` queries of a row; the order is free."""

    def reference(data, outputs, _):
        found, target = [], data["target_q_per_cta"]
        for head, ends in enumerate(data["k2q_row_ptr"].tolist()):
            for row, (batch, at) in enumerate(rows_of(data["seqlens_k"], data["blk_kv"])):
                count = ends[row + 1] - ends[row]
                for begin in range(0, count, target):
                    found.append((head, row, begin, min(target, count - begin), batch, at))
        outputs["work_count"].fill_(len(found))
        outputs["scheduler_metadata"][: len(found)] = torch.tensor(found, dtype=torch.int32)

    module.launch_reference = reference
    module.run_test(**config)


def slots(module, config: dict) -> None:
    """Each block that a query attends to gets the query's next slot."""

    def reference(data, outputs, _):
        taken = outputs["split_counts"]
        for head, edge, query, number in _edges(data, data["config"]["blk_kv"]):
            outputs["k2q_qsplit_indices"][head, edge] = number | int(taken[query, head]) << SLOT
            taken[query, head] += 1

    module.launch_reference = reference
    module.run_test(**config)


def _edges(data: dict, block: int) -> Iterator[tuple[int, int, int, int]]:
    """(head, edge, query, its number in its sequence), row by row."""
    firsts = data["cu_seqlens_q"].tolist()
    for head, ends in enumerate(data["k2q_row_ptr"].tolist()):
        for row, (batch, _) in enumerate(rows_of(data["seqlens_k"], block)):
            for edge in range(ends[row], ends[row + 1]):
                number = int(data["k2q_q_indices"][head, edge])
                yield head, edge, firsts[batch] + number, number


def attention(module, config: dict) -> None:
    """Each work item's queries and keys. The test gives all items block 0, so
    the reference uses that, too.
    """
    _beside(module, config, "compiled_sparse_atten_fwd", _partials, "assert_partials_match", PARTIAL)


def attention_nvfp4(module, config: dict) -> None:
    """The same with keys and values whose bfloat16 numbers come from FP4
    elements, their factors and a scale.
    """

    def partials(data, outputs):
        if data["q_dtype"] != "bfloat16":
            raise NotImplementedError("FP8 queries have no reference here")
        keys = _decoded(data["k"], data["k_scale_128x4"], data["k_global_scale"])
        values = _decoded(data["v"], data["v_scale_128x4"], None)
        _partials(data | {"k": keys, "v": values}, outputs)

    module._assert_matches_dequantized_twin = lambda *_: None  # by the library's own kernel, on a GPU
    _beside(module, config, "compiled_sparse_atten_nvfp4_kv", partials, None, PARTIAL)


def combined(module, config: dict) -> None:
    """Partial results, weighted by the exponentials of their logarithms."""
    _beside(module, config, "compiled_sparse_atten_combine", _combined, "assert_outputs_match", COMBINED)


def _beside(module, config: dict, name: str, reference: Callable, judge: str | None, limits: dict) -> None:
    """Runs `reference(data, outputs)` in place of MSA's kernel; equal bits are not required."""
    import tirx_kernels.ported.msa.sparse_atten_fwd as sibling
    import tirx_kernels.ported.msa.utils._msa_bench as bench

    home = module if judge else sibling
    usual = getattr(home, judge or "assert_partials_match")
    setattr(home, judge or "assert_partials_match", lambda *given: usual(*given, **limits))
    module.reference_case = lambda data, outputs: (data, outputs)
    setattr(bench, name, lambda given: lambda: reference(*given))
    module.run_test(**config)


def _partials(data: dict, outputs: dict) -> None:
    if data["paged"] or data["lse_temperature_scale"] is not None:
        raise NotImplementedError("pages and temperatures have no reference here")
    q, keys, values = (data[name].double() for name in "qkv")
    firsts_q, firsts_k = data["cu_seqlens_q"].tolist(), data["cu_seqlens_k"].tolist()
    places, each = _columns(data["partial_dtype"]), data["qhead_per_kv"]
    for item in data["scheduler_metadata"][: int(data["work_count"])].tolist():
        head, row, skip, count, batch, at = item
        first = int(data["k2q_row_ptr"][head, row]) + skip
        edges, heads = slice(first, first + count), slice(head * each, head * each + each)
        numbers = data["k2q_q_indices"][head, edges].long()
        slot = (data["k2q_qsplit_indices"][head, edges] >> SLOT & 127).long()
        begin, length = at * data["blk_kv"], data["seqlens_k"][batch]
        seen = torch.arange(begin, min(begin + data["blk_kv"], length))
        here, queries = firsts_k[batch] + seen, firsts_q[batch] + numbers
        scores = torch.einsum("eqd,kd->eqk", q[queries, heads], keys[here, head]) * data["softmax_scale"]
        if data["causal"]:
            last = numbers + length - data["seqlens_q"][batch]
            scores = scores.masked_fill((seen > last[:, None])[:, None], -torch.inf)
        weights = torch.softmax(scores, -1).nan_to_num(0.0)
        out = torch.zeros(count, each, len(places), dtype=torch.float64)
        out[..., places] = torch.einsum("eqk,kd->eqd", weights, values[here, head])
        outputs["o_partial"][slot, queries, heads] = out.to(outputs["o_partial"].dtype)
        outputs["lse_partial"][slot, queries, heads] = torch.logsumexp(scores, -1).float()


def _combined(data: dict, outputs: dict) -> None:
    if data["temperature"] or data["seqused_q"] is not None:
        raise NotImplementedError("temperatures and shortened sequences have no reference here")
    logs = data["lse_partial"].double().masked_fill(~data["live"], -torch.inf)
    partial = data["o_partial"].double()[..., _columns(data["partial_dtype"])]
    total = torch.logsumexp(logs, 0)
    weights = torch.exp(logs - total.clamp(min=-1e300))[..., None]
    out = torch.where(weights > 0, weights * partial, 0.0).sum(0)
    out = out if data["output_scale"] is None else out * data["output_scale"].double()
    outputs["o_out"].copy_(out)
    outputs["lse_out"].copy_(total)


def _columns(dtype: str) -> torch.Tensor:
    """The position of each column of a partial output: pairs of columns, so that a thread stores 16 bytes."""
    pairs = {"float32": 2, "bfloat16": 4, "float16": 4, "float8_e4m3": 8}[dtype]  # adjacent pairs of a thread
    column = torch.arange(128)
    block, inner = column // (8 * pairs), column % (8 * pairs)
    return block * 8 * pairs + inner % 8 // 2 * 2 * pairs + inner // 8 * 2 + inner % 2


def _decoded(packed: torch.Tensor, stored: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """(.., 128) bfloat16 numbers: elements, the ue4m3 factor of each 16 in tiles of 128 x 4, and a scale."""
    elements = E2M1[torch.stack([packed & 15, packed >> 4], -1).flatten(-2).long()]
    rows = elements.reshape(-1, 128)
    tiles = stored.reshape(-1, 2, 32, 4, 4).permute(0, 3, 2, 1, 4)  # 128 rows, 8 factors
    factors = tiles.reshape(-1, 8).view(torch.float8_e4m3fn).double()[: len(rows)]
    factors = factors if scale is None else factors * scale.double()
    return (rows * factors.repeat_interleave(16, -1)).bfloat16().view(elements.shape)


MSA = "msa_sparse_"
TABLE = {
    f"{MSA}prepare_flat_schedule_sm100": schedule,
    f"{MSA}prepare_fwd_split_atomic_sm100": slots,
    f"{MSA}atten_fwd_sm100": attention,
    f"{MSA}atten_fwd_nvfp4_kv_sm100": attention_nvfp4,
    f"{MSA}atten_fwd_combine_sm100": combined,
}
