"""JSON, a noun a file."""
