"""The names that the library imports from DeepEP before it launches anything; no code of DeepEP."""
