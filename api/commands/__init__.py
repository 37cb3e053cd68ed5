"""The commands, a file per subject; each has ``register(app)``."""
