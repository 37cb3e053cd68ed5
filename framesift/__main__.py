"""``python -m framesift``: the command line, where all of Framesift is installed."""

import sys

from framesift.errors import MissingPackage
from framesift.whole import of_whole

try:
    with of_whole("the command line"):
        from framesift_start import command
except MissingPackage as error:
    sys.exit(f"error: {error}")

command()
