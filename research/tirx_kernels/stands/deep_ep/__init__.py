"""What the library asks DeepEP for before it launches anything; no code of DeepEP."""
