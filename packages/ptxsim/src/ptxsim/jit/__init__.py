"""The compiled loop that runs warps, and the code generator that builds it from the ISA tables."""
