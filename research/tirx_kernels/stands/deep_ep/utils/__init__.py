"""What of DeepEP the library calls outside of its kernels."""
