"""Framesift's client: find driving frames on a server, from Python.

    import framesift

    frames = framesift.connect("http://127.0.0.1:8008").select(
        car=(10_000, 20_000), bicycle=(1, None), camera="front_center"
    )
    frames.save("val-bikes")

Needs httpx and nothing else of Framesift; pyarrow, pandas and Pillow only where an answer is asked
for in their form; a statement's rows come without pyarrow, too. Reads no environment variables.
See docs/python.md.
"""

from framesift.client import Client, connect, log_in
from framesift.datasets import Dataset, demand
from framesift.errors import (
    AlreadyExists,
    BadFile,
    FramesiftServerError,
    FramesiftWarning,
    InvalidQuestion,
    JobFailed,
    JobNotDone,
    MissingPackage,
    NoAnswer,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    NotSupported,
    ServerFailed,
    SqlError,
    Throttled,
    UnknownName,
    WrongVersion,
)
from framesift.forms.picture import Picture
from framesift.frames import Frame
from framesift.jobs import Job
from framesift.policies import Policy
from framesift.selection import Selection
from framesift.sql import SqlResult

__all__ = [
    "AlreadyExists",
    "BadFile",
    "Client",
    "Dataset",
    "Frame",
    "FramesiftServerError",
    "FramesiftWarning",
    "InvalidQuestion",
    "Job",
    "JobFailed",
    "JobNotDone",
    "MissingPackage",
    "NoAnswer",
    "NotAllowed",
    "NotAuthenticated",
    "NotFound",
    "NotSupported",
    "Picture",
    "Policy",
    "Selection",
    "ServerFailed",
    "SqlError",
    "SqlResult",
    "Throttled",
    "UnknownName",
    "WrongVersion",
    "connect",
    "demand",
    "log_in",
]
