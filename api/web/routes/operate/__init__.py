"""Operate: what keeps a home going; a page asks for the permission of its /v1 route."""
