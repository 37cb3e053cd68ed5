"""Accounting of jobs: what a user may have at once, and what jobs used."""
