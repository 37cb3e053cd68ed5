"""Jobs of an LSF cluster: docs/decisions/0092."""
