"""Framesift's client: find driving frames on a server, from Python.

    import framesift

    frames = framesift.connect("http://127.0.0.1:8008").select(
        car=(10_000, 20_000), bicycle=(1, None), camera="front_center"
    )
    frames.save("val-bikes")

Needs httpx and nothing else of Framesift; pyarrow, pandas and Pillow only where an answer is asked
for in their form; a statement's rows come without pyarrow, too. Reads no environment variables but
those of proxies, and `framesift.data.Scores` its job's. See docs/python.md.

What asks a server is imported where it is named first: `framesift.data` does without httpx.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from framesift.client import Client, connect, log_in
    from framesift.datasets import Dataset, demand
    from framesift.forms.gallery import Gallery
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
    "Gallery",
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

_MODULES = {
    "Client": "client",
    "Dataset": "datasets",
    "Frame": "frames",
    "Gallery": "forms.gallery",
    "Job": "jobs",
    "Picture": "forms.picture",
    "Policy": "policies",
    "Selection": "selection",
    "SqlResult": "sql",
    "connect": "client",
    "demand": "datasets",
    "log_in": "client",
}
"""Module of each name that is imported where it is named first."""


def __getattr__(name: str) -> object:
    """A name of `_MODULES`."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Every name, imported yet or not."""
    return sorted({*globals(), *__all__})
