"""Clusters that do, event for event, what an earlier one did: they need no second look."""
