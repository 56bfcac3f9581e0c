"""Findings in machine-readable form: SARIF, and the annotations of GitHub workflows.

Part of ptxsim's public interface: the names below stay when the internal modules change.
"""

from ptxsim.report.formats import github, sarif

__all__ = ["github", "sarif"]
