"""Framesift's own REST API, below /v1."""
