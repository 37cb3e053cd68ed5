"""Jobs of a PBS cluster: docs/decisions/0092."""
