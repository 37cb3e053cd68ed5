"""Jobs that run a user's own program on a dataset: what it is handed, its ranks, its outputs."""
