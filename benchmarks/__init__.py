"""Measurements: each prints a table with ratios for the machine that it runs on."""
