"""The least distance of two sides in time. A leaf: options and schemas have it as their default."""

MIN_GAP_S = 10.0
"""Frames of two sides are at least so far apart [s], unless told otherwise: at 50 km/h 140 m."""
