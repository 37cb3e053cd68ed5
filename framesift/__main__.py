"""``python -m framesift``: the command line, where the whole of Framesift is installed."""

from framesift_start import command

command()
