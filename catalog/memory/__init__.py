"""The newest snapshot in memory, and values that were used last."""
