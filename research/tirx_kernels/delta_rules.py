"""Linear attention of cuDNN token by token, in float64: the gated delta rule, its second version, and KDA.

A head's state S (values x keys) decays, erases what it holds under the key, and learns: S <- S a_t; S <- S +
(w_t v_t - S (b_t k_t)) k_t^T; output scale S q_t. The decay a is one number, or one per key channel; the
erase factor b and the write factor w are one number or one per channel. Gradients are autograd's, with the
states at the start of chunks as the test gives them.
"""

from __future__ import annotations

import itertools

import torch
from torch.nn.functional import softplus

LIMIT = 0.02  # limit of a relative root mean square, where a test's own tolerance expects equal bits
INPUTS = ("q", "k", "v", "gate", "beta", "w", "initial_state")


def forward(module, config: dict) -> None:
    """The test of a kernel that returns outputs, states or checkpoints, with its own limits."""
    module._source_launch = lambda data: lambda: data["source"].update(_forward(module, data))
    module.run_test(**config)


def _forward(module, data: dict) -> dict:
    every = data["config"]["checkpoint_every_n_tokens"]
    outputs, finals, entered = recurrence(data, _leaves(data), every)
    found = {"output": outputs, "final_state": finals, "checkpoints": entered}
    return {name: found[name].to(like.dtype) for name, like in data["tirx"].items()}


def backward(module, config: dict) -> None:
    """Gradients; the limits are the test's own if it has them as parts of a root mean square."""
    if hasattr(module, "_prepare_state_checkpoints"):
        module._prepare_state_checkpoints = lambda data: _enter(module, data)
        module._validate_outputs = _close
    module._source_launch = lambda data: lambda: data["source"].update(_backward(module, data))
    module.run_test(**config)


def _enter(module, data: dict) -> None:
    with torch.no_grad():
        entered = recurrence(data, _leaves(data), module._BT)[2]
    data["checkpoints"][: len(entered)].copy_(entered)


def _backward(module, data: dict) -> dict:
    leaves = _leaves(data)
    if data["config"].get("use_initial_state") and "initial_state" not in leaves:
        leaves["initial_state"] = _first_states(data, module._BT)
    outputs, finals, _ = recurrence(data, leaves, module._BT, data["checkpoints"].double())
    loss = (outputs * data["do"].double()).sum()
    if data.get("d_final_state") is not None:
        loss = loss + (finals * data["d_final_state"].double()).sum()
    loss.backward()
    given = {f"d{name}": leaf.grad for name, leaf in leaves.items()}
    given["d_initial_state"] = given.pop("dinitial_state", None)
    return {name: given[name].to(like.dtype) for name, like in data["tirx"].items()}


def _first_states(data: dict, every: int) -> torch.Tensor:
    """The initial state of each sequence, if the test has it only among the states of chunks."""
    spans = [last - first for first, last in itertools.pairwise(data["cu_seqlens"].tolist())]
    chunks = [0, *itertools.accumulate(-(-span // every) for span in spans)]
    return data["checkpoints"][chunks[:-1]].detach().double().requires_grad_()


def _close(data: dict, *, sources) -> None:
    if "source" not in sources:
        return
    for name, expected in data["source"].items():
        wrong = (data["tirx"][name].double() - expected.double()).square().mean().sqrt()
        ratio = float(wrong / expected.double().square().mean().sqrt())
        if not ratio < LIMIT:
            raise AssertionError(f"{name}: {ratio:.4f} of its root mean square off; {LIMIT} are allowed")


def _leaves(data: dict) -> dict[str, torch.Tensor]:
    there = [name for name in INPUTS if data.get(name) is not None]
    return {name: data[name].detach().double().requires_grad_() for name in there}


def recurrence(data: dict, given: dict, every: int, begun: torch.Tensor | None = None) -> tuple:
    """(outputs, final state of each sequence, states at the start of chunks of `every` tokens).

    begun: those states, used in place of the computed ones (gradients pass through as if they were computed).
    """
    config, key, value = data["config"], _normal(data, given["k"]), given["v"]
    query = _normal(data, given["q"]) if "q" in given else None
    decay, erase, write = _gates(data, given)
    outputs, finals, entered = [], [], []
    ends, start = data["cu_seqlens"].tolist(), given.get("initial_state")
    for number, (first, last) in enumerate(zip(ends, ends[1:], strict=False)):
        state = torch.zeros(*value.shape[1:], key.shape[-1], dtype=torch.float64)
        state = state if start is None else start[number]
        for t in range(first, last):
            if every and (t - first) % every == 0:
                if begun is not None and t > first:
                    state = state + (begun[len(entered)] - state).detach()
                entered.append(state)
            state = state * decay[t][:, None]
            learned = write[t] * value[t] - _read(state, erase[t] * key[t])
            state = state + learned[..., None] * key[t][:, None]
            if query is not None:
                outputs.append(config["scale"] * _read(state, query[t]))
        finals.append(state)
    return tuple(torch.stack(found) if found else None for found in (outputs, finals, entered))


def _read(state: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    return torch.einsum("hvk,hk->hv", state, key)


def _normal(data: dict, rows: torch.Tensor) -> torch.Tensor:
    """The rows normalised to length 1, if the kernel does so."""
    return (
        rows * (rows.square().sum(-1, keepdim=True) + 1e-6).rsqrt() if data["config"].get("l2norm") else rows
    )


def _gates(data: dict, given: dict) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The factors kept of the state (token, head, 1 or keys), erased, and written (.., 1 or values)."""
    config, gate, beta = data["config"], given["gate"], given["beta"]
    beta = torch.sigmoid(beta) if config["beta_sigmoid"] else beta
    logs = gate if config.get("log_gate", True) else torch.log(gate)
    if config["safe_gate"]:
        rate = torch.exp(data["a_log"].double()).view(-1, *[1] * (gate.dim() - 2))
        wanted = gate + data["dt_bias"].double()
        low = config.get("gate_lower_bound")
        logs = -rate * softplus(wanted) if low is None else low * torch.sigmoid(rate * wanted)
    logs, beta = (x if x.dim() == 3 else x[..., None] for x in (logs, beta))
    return torch.exp(logs), beta, given.get("w", beta)


CUDNN = "cudnn_sm100_"
TABLE = {
    **{
        f"{CUDNN}{kind}_{pass_}_f16": forward
        for kind in ("gdn", "gdn2")
        for pass_ in ("prefill", "recompute")
    },
    **{f"{CUDNN}{kind}_bprop_f16": backward for kind in ("gdn", "gdn2", "kda")},
}
