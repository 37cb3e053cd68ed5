"""Layouts of label data sets: how files are named, what labels' pixels mean, and classes."""
