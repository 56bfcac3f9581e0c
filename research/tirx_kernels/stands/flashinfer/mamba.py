"""The state-space update of Mamba-2 by its formula, in float32, token by token."""

from __future__ import annotations

import itertools

import torch
from torch.nn import functional

WHOLE = 32767  # the int16 value of a row's largest number


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
                           state_batch_indices=None, dst_state_batch_indices=None, pad_slot_id=-1,
                           state_scale=None, out=None, disable_state_update=False, philox_rounds=0,
                           intermediate_states_buffer=None, cu_seqlens=None, num_accepted_tokens=None,
                           **_):  # fmt: skip
    """state: (slots, H, D, N); x, dt, z: (batch, [tokens,] H, D); A: (H, D, N); B, C: (.., groups, N).

    With cu_seqlens, x, dt, z, B and C have the tokens of all sequences in succession.
    """
    if philox_rounds or intermediate_states_buffer is not None:
        raise NotImplementedError("random rounding and states in between have no reference here")
    out = torch.empty_like(x) if out is None else out
    for row, places in enumerate(_places(x, cu_seqlens)):
        accepted = 0 if num_accepted_tokens is None else max(int(num_accepted_tokens[row]) - 1, 0)
        slot = row if state_batch_indices is None else _slot(state_batch_indices, row, accepted)
        if slot == pad_slot_id:
            continue
        now = state[slot].float()
        now = now if state_scale is None else now * state_scale[slot][..., None]
        for step, at in enumerate(places):
            now, given = _step(now, *(t[at].float() for t in (x, dt, B, C)), A, D, dt_bias, dt_softplus)
            gate = functional.silu(z[at].float()) if z is not None else 1.0
            out[at] = (given * gate).to(out.dtype)
            if dst_state_batch_indices is not None:
                into = _slot(dst_state_batch_indices, row, step)
                _keep(state, state_scale, into, now) if into != pad_slot_id else None
        if dst_state_batch_indices is None and places and not disable_state_update:
            _keep(state, state_scale, slot, now)
    return out


def _places(x, cu_seqlens) -> list[list]:
    """The positions in x of the tokens of each sequence."""
    if cu_seqlens is not None:
        ends = cu_seqlens.tolist()
        return [list(range(*span)) for span in itertools.pairwise(ends)]
    if x.dim() == 4:
        return [[(row, step) for step in range(x.shape[1])] for row in range(len(x))]
    return [[row] for row in range(len(x))]


def _slot(indices, row: int, step: int) -> int:
    return int(indices[row, min(step, indices.shape[1] - 1)] if indices.dim() == 2 else indices[row])


def _keep(state, scale, slot: int, now) -> None:
    """Stores the state, rounded to its type; for int16 relative to the largest of each row, whose factor is
    kept.
    """
    if scale is not None:
        most = now.abs().amax(-1)
        factor = torch.where(most == 0, 1.0, WHOLE / most)
        scale[slot] = 1.0 / factor
        now = (now * factor[..., None]).round().clamp(-WHOLE, WHOLE)
    state[slot] = now.to(state.dtype)


def _step(state, x, dt, b, c, A, D, dt_bias, dt_softplus):
    """(state, output) after one token."""
    dt = dt if dt_bias is None else dt + dt_bias.float()
    dt = functional.softplus(dt) if dt_softplus else dt
    b, c = (t.repeat_interleave(len(x) // len(t), 0)[:, None, :] for t in (b, c))
    state = state * torch.exp(dt[..., None] * A.float()) + (dt * x)[..., None] * b
    given = (state * c).sum(-1)
    return state, given if D is None else given + D.float() * x
