"""Predicts what a kernel costs on a chip: replays a recorded sample of its clusters with measured costs."""
