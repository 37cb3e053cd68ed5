"""Sources, and the places that may be named as one."""
