"""Syntax trees -> bytecode rows."""
