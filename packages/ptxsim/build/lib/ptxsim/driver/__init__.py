"""Unmodified CUDA programs on the simulator: a stand-in for CUDA's driver and runtime, and its server."""
