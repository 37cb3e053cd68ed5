"""Bringing files back from tape and from archive classes of object stores, before they are read."""
