"""Spectrum Discover's own REST services."""
