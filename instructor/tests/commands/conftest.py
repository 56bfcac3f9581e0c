"""Fixtures that tests of the instructor's commands share."""

from cli_fixtures import kernels, run  # noqa: F401
