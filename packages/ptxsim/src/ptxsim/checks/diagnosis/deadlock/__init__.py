"""Why nothing moves any more: who waits for whom, and the first cause."""
