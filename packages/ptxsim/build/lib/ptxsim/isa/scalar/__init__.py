"""Scalar instructions: one table per family, from form to meaning."""
