"""Explanations for students beyond a finding: where D is wrong, common slips, what orders what, pictures."""
