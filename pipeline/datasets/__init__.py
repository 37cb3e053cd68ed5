"""Datasets: selections that are saved, divided and exported."""
