"""The processes that serve, and their connections."""
