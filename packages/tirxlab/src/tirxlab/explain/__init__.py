"""What a student is told beside a finding: where D is wrong, slips of the pen, what orders what, pictures."""
