"""Cataloging new files as they come."""
