"""The compiled loop that runs warps, and the code generator that makes it from the ISA tables."""
