"""Tags from tables and maps."""
