"""What is held in memory: the newest snapshot, and what was used last."""
