"""Texts that come from outside."""
