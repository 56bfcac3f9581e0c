"""The catalogue of causes: the possible causes of findings, what each explains, and the advice for each."""
