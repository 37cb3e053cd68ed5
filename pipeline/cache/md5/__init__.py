"""MD5 of many contents at once, in the vectors of a processor."""
