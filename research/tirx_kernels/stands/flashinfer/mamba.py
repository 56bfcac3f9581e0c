"""The state-space update of Mamba-2 by its formula, in float32, one token after the other."""

from __future__ import annotations

import torch
from torch.nn import functional

_UNKNOWN = ("dst_state_batch_indices", "state_scale", "intermediate_states_buffer", "cu_seqlens")


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
                           state_batch_indices=None, pad_slot_id=-1, out=None, disable_state_update=False,
                           philox_rounds=0, num_accepted_tokens=None, **other):  # fmt: skip
    """state: (slots, H, D, N); x, dt, z: (batch, [tokens,] H, D); A: (H, D, N); B, C: (.., groups, N)."""
    asked = [name for name in _UNKNOWN if other.get(name) is not None]
    if asked or philox_rounds or num_accepted_tokens is not None:
        raise NotImplementedError(f"{', '.join(asked) or 'random rounding'}: no reference here")
    out = torch.empty_like(x) if out is None else out
    steps = x.shape[1] if x.dim() == 4 else 1
    for row in range(len(x)):
        slot = row if state_batch_indices is None else int(state_batch_indices[row].flatten()[0])
        if slot == pad_slot_id:
            continue
        now = state[slot].float()
        for step in range(steps):
            at = (row, step) if x.dim() == 4 else (row,)
            now, given = _step(now, *(t[at].float() for t in (x, dt, B, C)), A, D, dt_bias, dt_softplus)
            gate = functional.silu(z[at].float()) if z is not None else 1.0
            out[at] = (given * gate).to(out.dtype)
        if not disable_state_update:
            state[slot] = now.to(state.dtype)
    return out


def _step(state, x, dt, b, c, A, D, dt_bias, dt_softplus):
    """(state, output) after one token."""
    dt = dt if dt_bias is None else dt + dt_bias.float()
    dt = functional.softplus(dt) if dt_softplus else dt
    b, c = (t.repeat_interleave(len(x) // len(t), 0)[:, None, :] for t in (b, c))
    state = state * torch.exp(dt[..., None] * A.float()) + (dt * x)[..., None] * b
    given = (state * c).sum(-1)
    return state, given if D is None else given + D.float() * x
