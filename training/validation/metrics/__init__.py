"""Metrics, which a validation adds up over frames: each is one file, and `table` names them all."""
