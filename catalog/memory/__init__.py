"""The newest snapshot held in memory."""
