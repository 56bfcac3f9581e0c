"""Dynamic checks, implemented as observers of machine events."""
