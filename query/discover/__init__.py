"""Spectrum Discover's search."""
