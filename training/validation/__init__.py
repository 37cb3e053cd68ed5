"""What a validation finds: scores, shards of them, and the report."""
