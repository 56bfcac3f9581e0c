"""FP8 and FP4 products with block scales in float64 on the CPU, under the names that the library's tests
import from DeepGEMM. Written from the definitions of the operations; no code of DeepGEMM.
"""

from __future__ import annotations

import torch

from deep_gemm import utils
from deep_gemm.utils.math import align, decoded

__all__ = [
    "fp8_einsum",
    "fp8_fp4_gemm_nt",
    "fp8_fp4_mqa_logits",
    "fp8_fp4_paged_mqa_logits",
    "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor",
    "get_paged_mqa_logits_metadata",
    "k_grouped_fp8_gemm_tn_contiguous",
    "m_grouped_fp8_fp4_gemm_nt_contiguous",
    "m_grouped_fp8_fp4_gemm_nt_masked",
    "set_mk_alignment_for_contiguous_layout",
    "tf32_hc_prenorm_gemm",
    "transform_sf_into_required_layout",
    "utils",
]


def tf32_hc_prenorm_gemm(a, b, d, sqr_sum, num_splits=None) -> None:
    """a b^T and the sums of the squares of a's rows; all of them go into the first split, zeros into the
    others.
    """
    for out, value in ((d, a.double() @ b.double().T), (sqr_sum, a.double().square().sum(-1))):
        out.zero_()
        (out if num_splits is None else out[0]).copy_(value)


def set_mk_alignment_for_contiguous_layout(alignment: int) -> None:
    """Does nothing: groups begin where the caller says."""


def transform_sf_into_required_layout(sf, mn, k, recipe, num_groups=None, *rest):
    """float32 factors, powers of two -> their exponents, four along K in an int32, rows contiguous."""
    step, gran_k = recipe
    rows = sf.float()
    if step > 1:
        rows = rows.repeat_interleave(step, dim=-2)[..., :mn, :]
    exponents = (rows.contiguous().view(torch.int32) >> 23) & 255
    count = exponents.shape[-1]
    padded = torch.zeros((*exponents.shape[:-1], align(count, 4)), dtype=torch.int32)
    padded[..., :count] = exponents
    four = padded.view(*padded.shape[:-1], -1, 4)
    words = sum(four[..., i] << 8 * i for i in range(3)) | four[..., 3] << 24
    room = torch.zeros((*words.shape[:-2], words.shape[-1], align(mn, 4)), dtype=torch.int32)
    room[..., :mn] = words.mT
    return room.mT[..., :mn, :]


def get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor(sf, layout, ks, gran_k, alignment, use_psum):
    """Factors of groups one after the other along K: their exponents, four of a group's in an int32.

    Sums of lengths (use_psum) lay out the same factors where groups begin at multiples of the granularity.
    """
    if use_psum and alignment % gran_k:
        raise NotImplementedError("groups that begin within a factor have no reference here")
    parts = sf.split([-(-k // gran_k) for k in ks])
    rows = [transform_sf_into_required_layout(part.T, part.shape[1], 0, (1, gran_k)) for part in parts]
    return torch.cat([words.T for words in rows]).contiguous()


def k_grouped_fp8_gemm_tn_contiguous(a, b, out, ks, layout, c, recipe=(1, 1, 128), use_psum_layout=False):
    """out = c + a_g^T b_g for each group: rows of both operands are along K."""
    at, word, span = 0, 0, 4 * recipe[2]
    for group, k in enumerate(ks):
        words = -(-k // span)
        rows, scaled = slice(at, at + k), []
        for data, packed in (a, b):
            factors = packed[word : word + words].T
            scaled.append(_values((data[rows].T, factors), recipe[1:]))
        out[group] = (c[group].double() + scaled[0] @ scaled[1].T).to(out.dtype)
        at, word = at + k, word + words


SPLIT = 256  # keys per task of paged logits


def get_paged_mqa_logits_metadata(lengths, page_size: int, sms: int, indices=None) -> torch.Tensor:
    """(SMs + 1, 2): the row, and the piece of its keys, at which each SM begins; each gets as many pieces."""
    if indices is not None:
        raise NotImplementedError("rows that share their keys have no schedule here")
    pieces = -(-lengths.flatten().long() // SPLIT)
    ends = pieces.cumsum(0)
    share, rest = divmod(int(ends[-1]), sms)
    at = torch.arange(sms + 1)
    at = at * share + at.clamp(max=rest)
    row = torch.searchsorted(ends, at, right=True)
    before = torch.cat([torch.zeros(1, dtype=torch.long), ends])[row]
    return torch.stack([row, at - before], dim=-1).int()


def _absent(*_, **__):
    raise NotImplementedError("the library's own reference in torch judges these")


fp8_fp4_mqa_logits = fp8_fp4_paged_mqa_logits = _absent


def _factors(packed: torch.Tensor, count: int) -> torch.Tensor:
    """float64 (.., rows, count) of packed exponents."""
    parts = torch.stack([packed >> 8 * i & 255 for i in range(4)], dim=-1)
    return torch.exp2(parts.flatten(-2)[..., :count].double() - 127)


def _values(operand, recipe) -> torch.Tensor:
    """float64 rows of an operand with its factors."""
    data, packed = operand
    plain = decoded(data)
    count = -(-plain.shape[-1] // recipe[1])
    return plain * _factors(packed, count).repeat_interleave(recipe[1], -1)[..., : plain.shape[-1]]


def fp8_fp4_gemm_nt(a, b, out, c=None, recipe_a=(1, 128), recipe_b=(1, 128), **_):
    product = _values(a, recipe_a) @ _values(b, recipe_b).mT
    out.copy_(product if c is None else product + c.double())


def fp8_einsum(expression, x, y, out, c=None, recipe=(1, 1, 128)):
    """torch.einsum of operands whose factors run along the letter that both have and the result lacks."""
    terms, result = expression.split("->")
    first, second = terms.split(",")
    (summed,) = set(first) & set(second) - set(result)
    sides = []
    for letters, (data, packed) in ((first, x), (second, y)):
        at = letters.index(summed)
        sides.append(_values((data.movedim(at, -1), packed.movedim(at, -1)), recipe[1:]))
    names = [term.replace(summed, "") + summed for term in (first, second)]
    product = torch.einsum(f"{names[0]},{names[1]}->{result}", *sides)
    out.copy_(product if c is None else product + c.double())


def m_grouped_fp8_fp4_gemm_nt_contiguous(
    a, b, out, layout, use_psum_layout=False, recipe_a=(1, 128), recipe_b=(1, 128), **_
):
    rows, groups = _values(a, recipe_a), _values(b, recipe_b)
    if use_psum_layout:
        raise NotImplementedError("the psum layout has no reference here")
    out[layout < 0] = 0  # rows between groups; `out` may hold anything before
    for group, matrix in enumerate(groups):
        mine = layout == group
        out[mine] = (rows[mine] @ matrix.T).to(out.dtype)


def m_grouped_fp8_fp4_gemm_nt_masked(
    a, b, out, masked_m, expected, recipe_a=(1, 128), recipe_b=(1, 128), **_
):
    rows, groups = _values(a, recipe_a), _values(b, recipe_b)
    for group, count in enumerate(masked_m.tolist()):
        out[group, :count] = (rows[group, :count] @ groups[group].T).to(out.dtype)
