"""A home on this machine, as a place: a module per subject, imported when a home is asked."""
