"""What a run tells: the events of units and threads, and the bus that hands them to its listeners."""
