"""Attention and its gradients by their definition, in float32."""

from __future__ import annotations

import torch


@torch.enable_grad()
def _flash_attn_bwd(q, k, v, out, dout, lse, softmax_scale: float, causal: bool = False):
    """Gradients of q, k, v."""
    leaves = [x.float().requires_grad_() for x in (q, k, v)]
    _flash_attn_fwd(*leaves, softmax_scale, causal)[0].backward(dout.float())
    return tuple(leaf.grad.to(q.dtype) for leaf in leaves)


def _flash_attn_fwd(q, k, v, softmax_scale: float, causal: bool = False, return_lse: bool = True):
    """(output, logarithms of the sums) of (batch, position, head, element); heads of q share those of k."""
    ratio = q.shape[2] // k.shape[2]
    keys, values = (x.float().repeat_interleave(ratio, 2).permute(0, 2, 1, 3) for x in (k, v))
    scores = q.float().permute(0, 2, 1, 3) @ keys.transpose(2, 3) * softmax_scale
    if causal:
        rows, columns = scores.shape[2:]
        later = torch.ones(rows, columns, dtype=torch.bool).triu(columns - rows + 1)
        scores = scores.masked_fill(later, float("-inf"))
    out = (torch.softmax(scores, -1) @ values).permute(0, 2, 1, 3).contiguous()
    return out.to(q.dtype), torch.logsumexp(scores, -1)
