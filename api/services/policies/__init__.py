"""Policies, and the rights that each change of one needs."""
