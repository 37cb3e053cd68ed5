"""Formats of annotations, a module each: what its files say, as classes and frames of shapes."""
