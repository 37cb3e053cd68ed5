"""Rules for users, tokens and collections: roles, scopes, days."""

ROLES = ("admin", "dataadmin", "datauser", "collectionadmin")
"""Roles, with Spectrum Discover's names; api.services.accounts.callers says what each may do."""

SCOPES = ("read", "write", "admin")
"""Scopes of a token; each contains those before it."""

MOST_DAYS = 3650
"""Longest life of a token [days]."""
