"""From a statement's text to its rows."""
