"""The schema of the records. A leaf: short commands read it without SQLAlchemy."""

NEWEST = "r0006"
"""Newest revision in migrations/versions; revisions are numbered, so that they can be compared."""
