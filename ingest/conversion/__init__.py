"""Annotations of other tools (polygons, run lengths, panoptic images) made into label images."""
