"""The findings of a run, as data."""
