"""The part of flash-attn for Blackwell."""
