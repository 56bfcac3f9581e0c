"""Attention in torch on the CPU, under the name by which the library's tests ask flash-attn for it."""
