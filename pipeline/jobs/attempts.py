"""The number of times that a job begins without a user's word."""

ATTEMPTS = 3
"""Attempts of a training or validation, unless the user sets another number: a lost one goes on
from its last results. Commands have one attempt."""
