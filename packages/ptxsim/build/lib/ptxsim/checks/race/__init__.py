"""Accesses that nothing orders: vector clocks, shadow memory, proxies, and the words for it."""
