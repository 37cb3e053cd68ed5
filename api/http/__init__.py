"""The HTTP door: which route answers a request, and what holds for it."""
