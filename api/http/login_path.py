"""Where a name and a password become a token."""

SERVICE, TOKEN = "/auth/v1", "/token"

LOGIN = SERVICE + TOKEN
"""Path of the route that gives a token."""
