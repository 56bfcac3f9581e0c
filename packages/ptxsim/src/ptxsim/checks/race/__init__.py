"""Race detection: vector clocks, shadow memory, proxy fences, and the wording of reports."""
