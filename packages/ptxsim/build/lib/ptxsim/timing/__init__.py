"""What a kernel would cost on a chip: a recorded sample of its clusters, played again with measured costs."""
