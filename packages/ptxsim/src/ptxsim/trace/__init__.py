"""Traces of a run: its recorded events, their schedule, and the files made from them."""
