"""The instruction set as data: one table per kind of instruction, from opcode to meaning."""
