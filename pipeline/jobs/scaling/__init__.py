"""Scaling studies: the same training on several numbers of ranks, and what that tells."""
