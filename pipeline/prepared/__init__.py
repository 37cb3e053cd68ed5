"""Prepared forms: a dataset's frames decoded and made small once, for every process of a node.

A leaf: training imports it.
"""
