"""Rules that begin jobs on a server by themselves, and tell of their ends."""
