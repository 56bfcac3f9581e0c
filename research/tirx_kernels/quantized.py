"""References for kernels that normalise or gate rows and quantize them to FP4, by their definitions.

FlashInfer's tests require its bits, so values are rounded where the kernels document rounding: products of
16-bit values stay in 16 bits where the kernel computes them so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from fp4_norms import added_and_normalised, blocks, elements

sys.path.insert(0, str(Path(__file__).parent / "stands"))

from flashinfer.quantization import _powers, _tiled


def rmsnorm_fp4(module, config: dict) -> None:
    """x / rms(x) * weight, in FP4; the product of x and the weight is a 16-bit number."""

    def reference(data, output, config):
        x, weight = data["x2d"], data["weight"]
        _quantize((x * weight).float() * _inverse_rms(x.float(), config["eps"]), data, output, config)

    _beside(module, reference)
    module.run_test(**config)


def add_rmsnorm_fp4(module, config: dict) -> None:
    """x is added to the residual, which is then normalised: float32 throughout, on one CTA's rows."""

    def reference(data, output, config):
        rows = (data[name].float().numpy() for name in ("x2d", "residual2d", "weight"))
        kind = data["residual2d"].dtype
        kept, normal = added_and_normalised(
            *rows, config["eps"], lambda sums: torch.from_numpy(sums).to(kind).float().numpy()
        )
        data["residual2d"].copy_(torch.from_numpy(kept))
        _quantize(torch.from_numpy(normal), data, output, config)
        if config["output_norm"]:
            output["y_norm"].copy_(torch.from_numpy(normal).view_as(output["y_norm"]))

    _beside(module, reference)
    module.run_test(**config)


def _beside(module, reference) -> None:
    """Puts `reference` in place of FlashInfer's kernel, and skips FlashInfer's wrapper."""
    module._launch_flashinfer = reference
    for check in ("_check_public_allocation", "_check_public_wrappers"):
        if hasattr(module, check):
            setattr(module, check, lambda *_: None)


def _inverse_rms(rows: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.rsqrt(rows.double().square().mean(-1, keepdim=True) + eps).float()


def _quantize(rows: torch.Tensor, data: dict, output: dict, config: dict) -> None:
    """Writes elements and factors in the order that the configuration requires."""
    values = rows.numpy()
    if config["scale_format"] == "ue8m0":
        parts = values.reshape(len(values), -1, 32)
        factors = _powers(parts, 6)
        packed = elements(parts * np.exp2(127.0 - factors.astype(np.float32))[..., None], len(values))
    else:
        packed, factors = blocks(values, float(data["global_scale"]), config["block_size"])
    output["y"].view(len(values), -1).copy_(torch.from_numpy(packed))
    both = config.get("output_both_sf_layouts", False)
    ordered = _tiled(factors) if config["swizzled"] or both else factors
    written = output["scale"].reshape(-1)
    known = torch.from_numpy(ordered.reshape(-1).copy())
    if not (config["swizzled"] or both):
        written.copy_(known)
    else:
        there = torch.from_numpy(_tiled(np.ones_like(factors)).reshape(-1) > 0)  # padding is not written
        written[there] = known[there]
    if both:
        output["scale_unswizzled"].copy_(torch.from_numpy(factors).view_as(output["scale_unswizzled"]))


def modulated_layernorm(module, config: dict) -> None:
    """A diffusion transformer's norm: residual + gate * input, normalised, scaled and shifted."""
    if config["output_format"] != "bf16":
        raise NotImplementedError("quantized outputs have no reference here")
    module._flashinfer_module = lambda: None
    _beside(module, _modulated)
    module.run_test(**config)


def _modulated(_, data: dict, output: dict, config: dict) -> None:
    value = data["input"].double()
    total = data["residual"].double() if config["has_residual"] else torch.zeros_like(value)
    given = {name: _row(data, name, value) for name in ("gate", "scale", "shift")}
    by = float(config["input_sf_scale"]) if config["use_input_sf_scale"] else 1.0
    gate = given["gate"] if config["mode"] in ("grgb", "grss") else 1.0
    total = total + value * gate * by
    output["residual"].copy_(total.float())
    spread = total.var(-1, keepdim=True, correction=0) + config["epsilon"]
    normal = (total - total.mean(-1, keepdim=True)) * spread.rsqrt()
    if config["mode"] == "grgb":
        normal = normal * data["gamma"].double() + data["beta"].double()
    else:
        normal = normal * (1 + given["scale"]) + given["shift"]
    output["norm"].copy_(normal)


def _row(data: dict, name: str, like: torch.Tensor) -> torch.Tensor:
    """Gate, scale or shift for each row: its own part plus the part shared by all rows."""
    return (data[name].float().reshape(like.shape) + data[f"{name}_bias"].float().reshape(-1)).double()


TABLE = {
    "flashinfer_rmsnorm_fp4quant": rmsnorm_fp4,
    "flashinfer_add_rmsnorm_fp4quant": add_rmsnorm_fp4,
    "flashinfer_fused_dit_layernorm": modulated_layernorm,
}
