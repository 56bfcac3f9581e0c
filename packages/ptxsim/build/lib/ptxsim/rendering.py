"""Findings for machines: SARIF, and the annotations of GitHub's workflows.

Part of the public face of ptxsim: the names below stay when the rooms behind them change.
"""

from ptxsim.report.formats import github, sarif

__all__ = ["github", "sarif"]
