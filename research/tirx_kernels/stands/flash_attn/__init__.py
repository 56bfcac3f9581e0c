"""Attention in torch on the CPU, under the name that the library's tests import from flash-attn."""
