"""Middleware, which every request passes."""
