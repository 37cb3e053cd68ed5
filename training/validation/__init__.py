"""Results of a validation: scores, shards of them, and the report."""
