"""Jobs of batch schedulers, whose words a dialect says: docs/decisions/0092."""
