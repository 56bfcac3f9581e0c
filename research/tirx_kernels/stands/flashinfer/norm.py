"""RMSNorm and LayerNorm by their formulas, in float32; tests count calls of the `_cute` names."""

from __future__ import annotations

import torch


def _use_cuda_norm(device) -> bool:
    return False


def _normal(x: torch.Tensor, weight: torch.Tensor, eps: float, bias: float) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return wide * scale * (weight.float() + bias)


def rmsnorm_cute(x, weight, out, eps, bias=0.0, **_):
    out.copy_(_normal(x, weight, eps, bias))


qk_rmsnorm_cute = rmsnorm_cute


def _rms(x, weight, eps, out, bias):
    out = torch.empty_like(x) if out is None else out
    (qk_rmsnorm_cute if x.dim() == 3 else rmsnorm_cute)(x, weight, out, eps, bias=bias)
    return out


def rmsnorm(x, weight, eps=1e-6, out=None, enable_pdl=None):
    return _rms(x, weight, eps, out, 0.0)


def gemma_rmsnorm(x, weight, eps=1e-6, out=None, enable_pdl=None):
    return _rms(x, weight, eps, out, 1.0)


def fused_add_rmsnorm_cute(x, residual, weight, eps, bias=0.0, **_):
    total = x.float() + residual.float()
    residual.copy_(total)
    x.copy_(_normal(total, weight, eps, bias))


def fused_add_rmsnorm(x, residual, weight, eps=1e-6, enable_pdl=None):
    fused_add_rmsnorm_cute(x, residual, weight, eps)


def gemma_fused_add_rmsnorm(x, residual, weight, eps=1e-6, enable_pdl=None):
    fused_add_rmsnorm_cute(x, residual, weight, eps, bias=1.0)


def layernorm_cute(out, x, gamma, beta, eps, enable_pdl=None):
    wide = x.float()
    centred = wide - wide.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps)
    out.copy_(centred * scale * gamma.float() + beta.float())


def layernorm(x, gamma, beta, eps=1e-6):
    out = torch.empty_like(x)
    layernorm_cute(out, x, gamma, beta, eps)
    return out


_LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}


def _quantized(wide: torch.Tensor, scale, out: torch.Tensor) -> None:
    most = _LARGEST[out.dtype]
    out.copy_((wide / float(scale)).clamp(-most, most).to(out.dtype))


def rmsnorm_quant_cute(out, x, weight, scale, eps, bias=0.0, **_):
    _quantized(_normal(x, weight, eps, bias), scale, out)


def rmsnorm_quant(out, x, weight, scale, eps=1e-6, enable_pdl=None):
    rmsnorm_quant_cute(out, x, weight, scale, eps)


def fused_add_rmsnorm_quant_cute(out, x, residual, weight, scale, eps, bias=0.0, **_):
    total = x.float() + residual.float()
    residual.copy_(total)
    _quantized(_normal(total, weight, eps, bias), scale, out)


def fused_add_rmsnorm_quant(out, x, residual, weight, scale, eps=1e-6, enable_pdl=None):
    fused_add_rmsnorm_quant_cute(out, x, residual, weight, scale, eps)
