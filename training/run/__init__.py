"""A run in its processes: workers, checkpoints, measurements, and how it ends."""
