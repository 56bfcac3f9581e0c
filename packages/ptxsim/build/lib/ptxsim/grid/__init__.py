"""All clusters of a grid: in parallel processes, or together where they wait for each other."""
