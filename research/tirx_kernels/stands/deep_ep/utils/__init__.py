"""The parts of DeepEP that the library calls outside of its kernels."""
