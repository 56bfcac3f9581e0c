"""Events that units and threads report during a run, and the bus that passes them to listeners."""
