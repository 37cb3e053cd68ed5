"""Jobs, what they leave on disk, and the models that they make."""
