"""The number of times that a job begins without a user's word."""

ATTEMPTS = 3
"""Of a training or validation, unless the user says otherwise: a lost one goes on from what it
has. Commands begin once."""
