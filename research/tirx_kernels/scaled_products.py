"""References for cuDNN's block-scaled products: operands times their factors in float64, and the epilogues.

`amax` is the largest value that leaves the kernel, as float32 before it is rounded to its type.
"""

from __future__ import annotations

import numpy as np
import torch
from oracles import answered
from torch.nn.functional import relu, silu

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
GROUP = 32  # so many columns are values, the next as many are their gates


def with_amax(data: dict, config: dict) -> None:
    """C = A B^T."""
    product = _product(data, config)
    out = data["source_output"]
    if config["c_dtype"] == "float4_e2m1fn":
        _store_e2m1(out["raw"], product)
    else:
        out["source"].copy_(product)
    data["source_amax"].fill_(product.abs().max())


def with_squared_relu(data: dict, config: dict) -> None:
    """C = alpha A B^T; D = relu(C)^2 times the row's probability."""
    product = config["alpha"] * _product(data, config)
    out = relu(product) ** 2 * data["prob"]["source"]
    _give(data, source_c=product, source_d=out)
    data["source_amax"].fill_(out.abs().max())


def with_squared_relu_backward(data: dict, config: dict) -> None:
    """x = alpha A B^T; D = 2 relu(x) C times the probability; its gradient: a row's sum of relu(x)^2 C."""
    forward = relu(config["alpha"] * _product(data, config))
    given = data["c"]["source"].double()
    out = 2 * forward * given * data["prob"]["source"]
    _give(data, source_d=out)
    data["source_dprob"].copy_((forward**2 * given).sum(1, keepdim=True))
    data["source_amax"].fill_(out.abs().max())


def with_gates(data: dict, config: dict) -> None:
    """alpha A B^T, whose columns are alternating groups of values and their gates; C = value silu(gate)."""
    if config["c_dtype"].startswith("float8"):
        raise NotImplementedError("C with factors of its own has no reference here")
    both = config["alpha"] * _product(data, config)
    values, gates = both.reshape(len(both), -1, 2, GROUP, both.shape[-1]).unbind(2)
    out = (values * silu(gates)).flatten(1, 2)
    _give(data, source_ab12=both, source_c=out)
    data["source_amax"].fill_(out.abs().max())


def _give(data: dict, **found: torch.Tensor) -> None:
    for name, values in found.items():
        data[name]["source"].copy_(values)


def _product(data: dict, config: dict) -> torch.Tensor:
    """(M, N, L), float64."""
    a, b = (_operand(data, name, config, rows) for name, rows in (("a", config["M"]), ("b", config["N"])))
    return torch.einsum("mkl,nkl->mnl", a, b)


def _operand(data: dict, name: str, config: dict, rows: int) -> torch.Tensor:
    """(rows, K, L): elements times the factor of each `sf_vec_size` along K."""
    values = data[name]["source"].double() if config["ab_dtype"] != "float4_e2m1fn" else None
    if values is None:
        packed = data[name]["raw"].view(config["L"], rows, -1)
        values = E2M1[torch.stack([packed & 15, packed >> 4], -1).flatten(-2).long()].permute(1, 2, 0)
    stored, size = data[f"sf{name}"].double(), config["sf_vec_size"]
    factors = stored.permute(1, 4, 3, 2, 5, 0).flatten(0, 2).flatten(1, 2)  # rows, groups, L
    return values * factors.repeat_interleave(size, 1)[:rows, : values.shape[1]]


def _store_e2m1(raw: torch.Tensor, values: torch.Tensor) -> None:
    import ml_dtypes

    codes = values.permute(2, 0, 1).numpy().clip(-6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    raw.copy_(torch.from_numpy(codes[..., ::2] | codes[..., 1::2] << 4).flatten())


DENSE = "cudnn_sm100_dense_blockscaled_gemm_persistent_"
TABLE = {
    f"{DENSE}amax": answered(with_amax),
    f"{DENSE}srelu_quant": answered(with_squared_relu),
    f"{DENSE}dsrelu_quant": answered(with_squared_relu_backward),
    f"{DENSE}swiglu_interleaved_quant": answered(with_gates),
}
