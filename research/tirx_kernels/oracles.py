"""References for kernels whose upstream implementation is a package that is not installed: torch on the CPU.

Their tests compare the kernel's outputs (`data["tirx"]`) with those of upstream (`data["source"]`), and some
also with an oracle of their own in torch. `alone` leaves upstream out, so that the oracle alone decides;
`answered` puts the results of a function of ours where upstream would write. Tolerances stay.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from exact import wrong_merged, wrong_products

E4M3_MOST, BLOCK = 448.0, 32
SPARSE = ("q", "k", "v", "block_index", "block_nums", "block_sizes", "softmax_scale")
PROBABILITIES = {"bf16": 0.01, "fp8": 0.05, "mxfp8": 0.05, "nvfp4": 0.15}  # allowed rms rounding error


def alone(module, config: dict) -> None:
    """Lets the test's oracle decide; where the test also wants upstream, it gets the kernel's own outputs."""
    _silence(module, lambda data: data["source"].update(data["tirx"]))
    _restrict(getattr(module, "_data", None))
    module.run_test(**config)


def answered(by: Callable[[dict, dict], None]) -> Callable:
    def judge(module, config: dict) -> None:
        _silence(module, lambda data: by(data, config))
        module.run_test(**config)

    return judge


def _silence(module, fill: Callable[[dict], None]) -> None:
    """Calls `fill` where the test would launch upstream, and skips its compilation."""

    def instead(data, *_):
        return lambda: fill(data)

    for home, name in ((module, "_compile_reference"), (module, "_data"), (module, "_reference")):
        if name == "_compile_reference" and hasattr(home, name):
            setattr(home, name, instead)
        elif hasattr(getattr(home, name, None), "compile_reference"):
            getattr(home, name).compile_reference = instead


def _restrict(judge) -> None:
    """Restricts the oracle to ours of the two implementations."""
    if judge is None:
        return
    usual = judge.validate_outputs

    def validate(data, sources=(), with_oracle=True, **rest):
        usual(data, sources=("tirx",), with_oracle=True, **rest)

    judge.validate_outputs = validate


def compressed(module, config: dict) -> None:
    """CSA's compressor, within a bfloat16: of each four tokens, a softmax over their scores plus an addend
    weights their values; if rows have two halves, the first is that of the four tokens before.
    """
    module._source_launch = lambda data: lambda: data["source_out"].copy_(_compressed(data).flatten())
    usual = module._validate_outputs

    def validate(data, include_source):
        usual(data, include_source=False)
        torch.testing.assert_close(data["out"], data["source_out"], rtol=2**-7, atol=1e-5)

    module._validate_outputs = validate
    module.run_test(**config)


def _compressed(data: dict) -> torch.Tensor:
    dim, halves, found = data["head_dim"], data["coff"], []
    scores, values = (data[name].double().view(-1, halves, dim) for name in ("score", "kv"))
    added = data["ape"].double().view(-1, halves, dim)
    for first, last in itertools.pairwise(data["cu_seqlens"].tolist()):
        for block in range((last - first) // len(added)):
            at = first + block * len(added)
            own = slice(at, at + len(added))
            weights, rows = scores[own, -1] + added[:, -1], values[own, -1]
            if halves == 2 and block:
                before = slice(at - len(added), at)
                weights = torch.cat([scores[before, 0] + added[:, 0], weights])
                rows = torch.cat([values[before, 0], rows])
            found.append((torch.softmax(weights, 0) * rows).sum(0))
    if len(found) != data["nb_total"]:
        raise NotImplementedError("rows that no sequence fills have no reference here")
    return torch.stack(found)


def beside_torch(module, config: dict) -> None:
    """Compares the logits of DeepGEMM with the test's own reference in torch."""
    for name in ("_run_deepgemm_mqa", "_run_deepgemm_paged_mqa"):
        if hasattr(module, name):
            setattr(module, name, lambda data, **_: data["reference"])
    module.run_test(**config)


# ---- our own ----


def merged_states(module, config: dict) -> None:
    """Outputs within the rounding bounds of the exact ones; where FlashInfer's are wanted, the kernel's are
    used.
    """
    import flashinfer

    usual, given = module._kernel_args, []

    def arguments(*tensors):
        given[:] = tensors
        return usual(*tensors)

    def judged(*states):
        wide = [tensor.float().numpy() for tensor in (*states, *given[4:])]
        v_wrong, s_wrong = wrong_merged(wide[:4], *wide[4:], config["dtype"])
        assert not v_wrong and not s_wrong, f"{v_wrong} outputs and {s_wrong} logarithms are wrong"
        return tuple(given[4:])

    module._kernel_args, flashinfer.merge_state = arguments, judged
    module.run_test(**config)


def exact_product(module, config: dict) -> None:
    """Outputs within the rounding bounds: the test expects the sums of one tensor core, in its order."""
    usual, given = module.prepare_data, []

    def prepare(*asked):
        given[:] = usual(*asked)
        return tuple(given)

    def judged(out, *_, **limits):
        form = str(out.dtype).split(".")[1]
        wrong = wrong_products(*(x.float().numpy() for x in (*given[:2], out)), form)
        assert not wrong, f"{wrong} elements are wrong"

    module.prepare_data = prepare
    module.torch = SimpleNamespace(**vars(torch) | {"testing": SimpleNamespace(assert_close=judged)})
    module.run_test(**config)


def block_sparse_attention(data: dict, config: dict) -> None:
    """Attention in which each block of 64 queries uses the blocks of 64 keys
    that its row of the table names.
    """
    data["source"].update(block_sparse(**{name: data["inputs"][name] for name in SPARSE}))


def block_sparse(q, k, v, block_index, block_nums, block_sizes, softmax_scale, block=64) -> dict:
    """Output and logarithms of the sums; without counts whole rows of the
    table, without sizes whole blocks.
    """
    out, lse = torch.zeros(q.shape), torch.full(q.shape[:3], -math.inf)
    ratio = q.shape[1] // k.shape[1]
    for batch, head, tile in np.ndindex(*block_index.shape[:3]):
        count = block_index.shape[3] if block_nums is None else int(block_nums[batch, head, tile])
        rows, blocks = (
            slice(block * tile, block * tile + block),
            block_index[batch, head, tile, :count].tolist(),
        )
        keys = [
            block * b + i for b in blocks for i in range(block if block_sizes is None else block_sizes[b])
        ]
        keys = [key for key in keys if key < k.shape[2]]
        if not keys:
            continue
        scores = q[batch, head, rows].float() @ k[batch, head // ratio, keys].float().T * softmax_scale
        out[batch, head, rows] = torch.softmax(scores, -1) @ v[batch, head // ratio, keys].float()
        lse[batch, head, rows] = torch.logsumexp(scores, -1)
    return {"out": out, "lse": lse}


def projection_with_rope(data: dict, config: dict) -> None:
    """x w^T in bfloat16; pairs of a head's last 64 features are rotated; quantized along rows and columns."""
    if "x" in data:
        x, w = data["x"].float(), data["w"].float()
        w = w if config["w_out_in"] else w.T
    else:
        x, w = (_scaled(data[f"{name}_code"], data[f"{name}_scale"]) for name in ("x", "w"))
    heads = (x @ w.T).bfloat16().float().reshape(len(x), config["num_heads"], -1)
    cos, sin = (data[name].float()[:, None, :] for name in ("cos", "sin"))
    first, second = heads[..., 128::2], heads[..., 129::2]
    left = first * cos[..., :32] - second * sin[..., :32]
    right = first * sin[..., 32:] + second * cos[..., 32:]
    turned = torch.cat([heads[..., :128], left, right], -1)
    out = data["source"]
    out["out_fp8_row"], out["out_scales_row"] = _quantized(turned)
    by_token, scales = _quantized(turned.permute(1, 2, 0))
    out["out_fp8_col"] = by_token.float().permute(2, 0, 1).to(torch.float8_e4m3fn)
    out["out_scales_col"] = scales.permute(2, 0, 1)


@torch.enable_grad()
def sparse_gradients(data: dict, config: dict) -> None:
    """Attention of each query to the rows that it names and to a sink without a value; by autograd."""
    given, limit = data["inputs"], data["derived"]["head_dim_v"]
    q, kv, sink = (given[x].detach().double().requires_grad_() for x in ("q", "kv", "attn_sink"))
    lengths, loss = given["topk_length"], 0.0
    for at, named in enumerate(given["topk_idxs"].long()):
        seen = named if lengths is None else named[: max(int(lengths[at]), 0)]
        rows = kv[seen[seen >= 0]]
        scores = torch.cat([q[at] @ rows.T * given["softmax_scale"], sink[:, None]], -1)
        out = torch.softmax(scores, -1)[:, :-1] @ rows[:, :limit]
        loss = loss + (out * given["dout"][at].double()).sum()
    found = torch.autograd.grad(loss, (q, kv, sink))
    for name, gradient in zip(("dq", "dkv", "d_sink"), found, strict=True):
        data["source"][name].copy_(gradient)


def product_with_swiglu(data: dict, config: dict) -> None:
    """alpha A B^T; groups of 32 columns are in turn values and their gates."""
    a, b = (data[name]["source"].float() for name in ("a", "b"))
    both = config["alpha"] * torch.einsum("mkl,nkl->mnl", a, b)
    values, gates = both.reshape(len(both), -1, 2, 32, both.shape[-1]).unbind(2)
    data["source_ab12"]["source"].copy_(both)
    data["source_c"]["source"].copy_((values * torch.nn.functional.silu(gates)).flatten(1, 2))


def product_in_tf32(module, config: dict) -> None:
    """Truncates B to tf32, so that the test's float32 reference is the product that a GPU computes."""
    usual = module.prepare_data

    def prepare(**given):
        data = usual(**given)
        data["b"] = (data["b"].view(torch.int32) & -(1 << 13)).view(torch.float32)
        data["reference_d"] = data["a"].float() @ data["b"].T
        return data

    module.prepare_data = prepare
    module.run_test(**config)


def attention_in_fp4(module, config: dict) -> None:
    """Lets attention in float64 on the decoded operands decide alone, since upstream's bits are not
    available.
    """
    usual, limit = module._error_stats, PROBABILITIES[config["pv_format"]]

    def measured(out, exact):
        wrong = (out.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt()
        assert wrong < limit, f"{float(wrong):.4f} of the root mean square off; {limit} are allowed"
        return usual(out, exact)

    module._error_stats = measured
    module.run_reference = lambda data, _: data["out_tirx"].clone()
    module.run_test(**config)


def _scaled(code, scale):
    """Decoded MXFP8: each 32 elements of a row have a power of two, its exponent biased by 127."""
    return code.float() * torch.pow(2.0, scale.float() - 127).repeat_interleave(BLOCK, -1)


def _quantized(values):
    blocks = values.reshape(*values.shape[:-1], -1, BLOCK)
    exponent = torch.ceil(torch.log2(blocks.abs().amax(-1) / E4M3_MOST)).clamp(-127, 127)
    code = (blocks * torch.pow(2.0, -exponent)[..., None]).clamp(-E4M3_MOST, E4M3_MOST)
    return code.reshape(values.shape).to(torch.float8_e4m3fn), (exponent + 127).to(torch.uint8)


def block_sparse_gradients(module, config: dict) -> None:
    """Lets the test's oracle decide; builds what cuDNN's forward pass and its
    table of queries would provide.
    """

    def forward(q, k, v, index, *rest, block, q2k_block_nums, softmax_scale, layout, **_):
        wide = [x.transpose(1, 2) if layout == "bshd" else x for x in (q, k, v)]
        sizes = rest[0] if rest and isinstance(rest[0], torch.Tensor) else None
        if sizes is not None and sizes.dim() > 1:
            raise NotImplementedError("sizes of blocks of several sequences have no reference here")
        found = block_sparse(*wide, index, q2k_block_nums, sizes, softmax_scale, block)
        out = found["out"].to(q.dtype)
        return (out.transpose(1, 2).contiguous() if layout == "bshd" else out), found["lse"]

    interface = SimpleNamespace(
        bsa_attn_fwd_blk64_cutedsl=partial(forward, block=64),
        bsa_attn_fwd=partial(forward, block=128),
        _build_bucketed_k2q_csr=queries_of_blocks,
    )
    module._data.load_reference_module = lambda name: interface
    alone(module, config)


def queries_of_blocks(index, _, blocks: int, *, bucket_size_blocks: int, q2k_block_nums):
    """For each block of keys, the blocks of queries that attend to it, one group of those after another.

    Returns (where the lists of each group begin, all lists, number of groups, the longest list).
    """
    batch, heads, rows, most = index.shape
    groups = -(-rows // bucket_size_blocks)
    begins = torch.zeros(batch, heads, groups, blocks + 1, dtype=torch.int32)
    lists = torch.zeros(batch, heads, max(rows * most, 1), dtype=torch.int32)
    longest = 0
    for b, h in np.ndindex(batch, heads):
        found: list[int] = []
        for group, key in np.ndindex(groups, blocks):
            begins[b, h, group, key] = len(found)
            for row in range(group * bucket_size_blocks, min((group + 1) * bucket_size_blocks, rows)):
                count = most if q2k_block_nums is None else int(q2k_block_nums[b, h, row])
                found += [row] if key in index[b, h, row, :count].tolist() else []
            begins[b, h, group, key + 1] = len(found)
            longest = max(longest, len(found) - int(begins[b, h, group, key]))
        lists[b, h, : len(found)] = torch.tensor(found, dtype=torch.int32)
    return begins, lists, groups, longest


BSA, FLEX = "cudnn_sm100_bsa_", "cudnn_sm100_flex_attention_"
TABLE = {
    "merge_state": merged_states,
    "fp16_bf16_gemm": exact_product,
    f"{BSA}forward_combine_blk64": alone,
    f"{BSA}forward_blk128": alone,
    f"{BSA}forward_blk64": answered(block_sparse_attention),
    f"{BSA}backward_blk64": block_sparse_gradients,
    f"{BSA}backward_blk128": block_sparse_gradients,
    "cudnn_sm103_flex_attention_forward": alone,
    **{f"deepgemm_sm100_{x}_mqa_logits": beside_torch for x in ("fp4", "fp8", "fp4_paged", "fp8_paged")},
    "cudnn_sm100_moe_grouped_gemm_dglu_dbias": alone,
    "cudnn_sm100_moe_blockscaled_grouped_gemm_dglu_dbias": alone,
    "cudnn_sm100_csa_compressor_fwd": compressed,
    "cudnn_sm100_dsa_sparse_attention_backward": answered(sparse_gradients),
    "deepgemm_sm100_tf32_hc_prenorm_gemm": product_in_tf32,
    "flash_attention4_fp4": attention_in_fp4,
    "cudnn_sm100_dense_gemm_persistent_swiglu": answered(product_with_swiglu),
    "cudnn_sm100_gemm_proj_rope_mxfp8_bf16in": answered(projection_with_rope),
    "cudnn_sm100_gemm_proj_rope_mxfp8_mxfp8in": answered(projection_with_rope),
}
