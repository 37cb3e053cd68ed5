"""Requests to a server: their transport, pages of lists, events, versions."""
