"""Frames of a dataset as arrays, for programs of users: NumPy, and no server.

    from framesift.data import open_frames

    frames = open_frames("jobs/run-city-1/input/manifest", split="train")
    image, class_ids = frames[0]

Importing it needs NumPy alone. Pillow is imported where PNG files are decoded, simplejpeg where
JPEG files are, pyarrow where the table of a manifest is read; a list of files and a prepared form
are read without pyarrow, and a prepared form without the other two. See docs/python.md.
"""

from framesift.data.classes import UNKNOWN_CLASS, Classes
from framesift.data.frames import Frames, open_frames
from framesift.data.scores import Scores

__all__ = ["UNKNOWN_CLASS", "Classes", "Frames", "Scores", "open_frames"]
