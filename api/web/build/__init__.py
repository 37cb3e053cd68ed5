"""Datasets as pages show them: forms that make them, what was achieved, gaps."""
