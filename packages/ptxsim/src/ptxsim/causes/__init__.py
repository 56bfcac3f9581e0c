"""The catalogue of causes: what a finding may be due to, what each explains, and what is advised."""
