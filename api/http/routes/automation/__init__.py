"""Routes of what begins jobs by itself, and tells of their ends."""
