"""Backends: where jobs run."""
