"""The form of a scene's name."""

SCENE = "[0-9]{8}_[0-9]{6}"
"""Day and time at which A2D2 began to record it, as a regular expression of Python and of SQL."""
