"""Observers of a run: what is wrong although, or because, the machine went on."""
