"""Framesift's client: find driving frames on a server, from Python.

    import framesift

    frames = framesift.connect("http://127.0.0.1:8008").select(
        car=(10_000, 20_000), bicycle=(1, None), camera="front_center"
    )
    frames.save("val-bikes")

Needs httpx and nothing else of Framesift.
"""

from framesift.client import Client, FramesiftServerError, Selection, connect

__all__ = ["Client", "FramesiftServerError", "Selection", "connect"]
