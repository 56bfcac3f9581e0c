"""Runs the clusters of a grid: in parallel processes, or together if they wait for each other."""
