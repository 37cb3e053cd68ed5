"""The records of what begins jobs by itself, and of what is told of their ends."""
