"""The bound of a staging's transfers, the same at every door."""

MOST_WORKERS = 256
"""Files fetched at once that a user may ask for."""
