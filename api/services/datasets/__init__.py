"""Datasets: made, derived, made again, and given to other programs."""
