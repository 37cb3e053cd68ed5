"""Prepared forms: a dataset's frames decoded once, small or whole, for every process of a node.

A leaf: training imports it.
"""
