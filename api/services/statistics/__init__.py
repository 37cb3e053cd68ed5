"""Statistics of frames."""
