"""Services that begin jobs by themselves, and tell of their ends."""
