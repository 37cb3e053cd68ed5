"""Policies: tags that are set on the files which a condition finds."""
