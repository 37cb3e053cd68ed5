"""Extractors: each reads one file of a frame and writes the frame's tags of one family."""
