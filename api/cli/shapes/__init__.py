"""Protocols of each noun that home and server have in common; mypy holds both to them."""
