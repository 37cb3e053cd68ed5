"""``python -m framesift_start MODULE ARGUMENT...``: runs a module of Framesift's."""

import runpy
import sys

from framesift_start import own_root_first

own_root_first()
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
