"""What home and server have in common, for each noun: protocols that mypy holds both to."""
