"""Deadlocks: which thread waits for which, and the first cause."""
