"""Linear attention of FlashInfer and KDA by its definition, token by token in float64.

A request's state S (values x keys) is in a slot of a pool. Each new token decays it, removes what it holds
under the key, writes the value there, and reads it: S <- S a; S <- S + b (v - S k) k^T; o = scale S q. The
decay is one number per head for the gated delta rule, and one per key channel for KDA.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import torch
from delta_rules import LIMIT
from torch.nn.functional import softplus

EPSILON = 1e-6  # in the norms of keys and queries
NO_REFERENCE = ("per_token_pool_scatter", "per_request_accepted_steps", "recovery_steps", "disable_output")


def token(state, decay, key, value, write) -> torch.Tensor:
    """The state after one token; `decay` and `write` have a number per head, or per channel where given.

    state: (heads, values, keys). decay: (heads, 1 or keys). write: (heads, 1).
    """
    state = state * decay[:, None, :]
    held = torch.einsum("hvk,hk->hv", state, key)
    return state + (write * (value - held))[..., None] * key[:, None, :]


def unit(rows: torch.Tensor) -> torch.Tensor:
    return rows * (rows.square().sum(-1, keepdim=True) + EPSILON).rsqrt()


def gated_delta(module, config: dict) -> None:
    """FlashInfer's gated delta rule: a pool of states, one or more tokens per request."""
    if any(config.get(name) for name in NO_REFERENCE):
        raise NotImplementedError(f"no reference here for {', '.join(NO_REFERENCE)}")
    module._run_reference = _gated_delta
    module.run_test(**config)


def _gated_delta(case: dict) -> None:
    config, pool = case["config"], case["source_state"]
    before = pool.double()
    scale = before.shape[-1] ** -0.5
    cached = case["source_intermediate"] if config.get("cache_intermediate_states") else None
    keep = config.get("disable_state_update") or (cached is not None and case["q"].shape[1] == 1)
    slots = case["read_indices"] if config.get("same_pool", True) else case["write_indices"]
    for number, slot in enumerate(case["read_indices"].clamp(min=0).tolist()):
        state = before[slot]
        for t in range(case["q"].shape[1]):
            query, key, value, decay, write = _gated_inputs(case, number, t)
            state = token(state, decay, key, value, write)
            case["source_output"][number, t] = scale * torch.einsum("hvk,hk->hv", state, query)
            if cached is not None:
                cached[number, t] = state
        if not keep:
            pool[max(int(slots[number]), 0)] = state


def _gated_inputs(case: dict, number: int, t: int) -> tuple[torch.Tensor, ...]:
    """(query, key, value, decay, write) of one token, one row per value head."""
    query, key, value = (case[name][number, t].double() for name in "qkv")
    if case["config"].get("use_qk_l2norm", True):
        query, key = unit(query), unit(key)
    query, key = (rows.repeat_interleave(len(value) // len(rows), 0) for rows in (query, key))
    rate = -case["A_log"].double().exp()
    decay = torch.exp(rate * softplus(case["a"][number, t].double() + case["dt_bias"].double()))
    write = torch.sigmoid(case["b_gate"][number, t].double())
    return query, key, value, decay[:, None], write[:, None]


def gated_prefill(module, config: dict) -> None:
    """Whole sequences with the decay `alpha` (or `gate`): within 2 % of a root mean square (delta_rules.py),
    since the library's limits assume the same order of sums.
    """

    def reference(case, output, state):
        given = case["initial_state"] if getattr(case["config"], "needs_initial_state", True) else None
        ends = case["cu_seqlens"].tolist()
        found = [_prefilled(case, *span, given, n) for n, span in enumerate(itertools.pairwise(ends))]
        output.copy_(torch.cat([out for out, _ in found]))
        state[: len(found)].copy_(torch.stack([final for _, final in found]))

    def close(actual, expected, **_):
        error = (actual.double() - expected.double()).square().mean().sqrt()
        if error > LIMIT * expected.double().square().mean().sqrt():
            raise AssertionError(f"{float(error):.3g} off, of a root mean square")

    module._run_oracle = reference
    module.torch = SimpleNamespace(**vars(torch) | {"testing": SimpleNamespace(assert_close=close)})
    module.run_test(**config)


def _prefilled(case: dict, first: int, last: int, given, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(outputs, state) of one sequence."""
    gates = case["alpha"] if "alpha" in case else case["gate"]
    heads = gates.shape[1]
    q, k, v = (case[x][first:last].double().repeat_interleave(heads // case[x].shape[1], 1) for x in "qkv")
    state = torch.zeros(heads, v.shape[-1], k.shape[-1], dtype=torch.float64)
    state = state if given is None else given[number].double()
    outputs = []
    for t in range(last - first):
        decay, write = (x[first + t].double()[:, None] for x in (gates, case["beta"]))
        state = token(state, decay, k[t], v[t], write)
        outputs.append(case["scale"] * torch.einsum("hvk,hk->hv", state, q[t]))
    return torch.stack(outputs) if outputs else torch.zeros(0, *v.shape[1:]), state


def kimi_prefill(module, config: dict) -> None:
    """KDA's forward pass: gates are bounded from below, beta is the argument of a sigmoid."""
    module._reference = _kimi_prefill
    module.run_test(**config)


def _kimi_prefill(case: dict, cfg) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = case["q"].shape[1]
    ends = [0, tokens] if case["cu_seqlens"] is None else case["cu_seqlens"].tolist()
    given = {"a_log": case["A_log"], "lower_bound": cfg.lower_bound}
    outputs, finals = torch.zeros_like(case["q"]), []
    for number, (first, last) in enumerate(itertools.pairwise(ends)):
        state = case["initial_state"][number].double()
        for t in range(first, last):
            query, key = (unit(case[name][0, t].double()) for name in "qk")
            write = torch.sigmoid(case["beta"][0, t].double())[:, None]
            state = token(state, _kimi_decay(case | given, t), key, case["v"][0, t].double(), write)
            outputs[0, t] = cfg.scale * torch.einsum("hvk,hk->hv", state, query)
        finals.append(state.float())
    return outputs, torch.stack(finals)


def kimi_delta(module, config: dict) -> None:
    """FlashInfer's KDA: a gate per key channel; a negative slot marks an absent request."""
    module._flashinfer_reference = lambda case: _kimi_delta(module, case)
    module.run_test(**config)


def _kimi_delta(module, case: dict) -> torch.Tensor:
    pool = case["reference_state"] if "reference_state" in case else _pool(module, case)
    bounds = case["cu_seqlens"].tolist()
    slots = case["ssm_state_indices"].reshape(len(bounds) - 1, -1).tolist()
    out = torch.zeros_like(case["tirx_out"])
    before = pool.double()
    for row, first, last in zip(slots, bounds, bounds[1:], strict=False):
        state = before[row[0]]
        for t, slot in zip(range(first, last), row, strict=False):
            if slot < 0:
                continue
            query, key = (unit(case[name][0, t].double()) for name in "qk")
            write = case["beta"][0, t].double()[:, None]
            state = token(state, _kimi_decay(case, t), key, case["v"][0, t].double(), write)
            out[0, t] = case["scale"] * torch.einsum("hvk,hk->hv", state, query)
            pool[slot] = state
    return out


def _pool(module, case: dict) -> torch.Tensor:
    return module._state_view(case["reference_state_raw"], case)


def _kimi_decay(case: dict, t: int) -> torch.Tensor:
    wanted = case["g"][0, t].double()
    wanted = wanted + case["dt_bias"].double().view_as(wanted)
    rate, low = case["a_log"].double().exp()[:, None], case["lower_bound"]
    return torch.exp(-rate * softplus(wanted) if low is None else low * torch.sigmoid(rate * wanted))


TABLE = {
    "gdn_decode_bf16_ilp4": gated_delta,
    "gdn_decode_bf16_wide_vec_mtp": gated_delta,
    "gdn_decode_bf16_wide_vec_t1": gated_delta,
    "gdn_decode_fp32_mtp_warp": gated_delta,
    "gdn_prefill_sm100": gated_prefill,
    "gdn_cp_prefill_sm100": gated_prefill,
    "kda_forward_portfolio_multishape": kimi_prefill,
    "recurrent_kda_decode_grouped": kimi_delta,
    "recurrent_kda_decode_one_warp": kimi_delta,
}
