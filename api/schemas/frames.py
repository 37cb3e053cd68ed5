"""Frames as JSON."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from api.schemas.base import Schema
from query.frames.one_frame import SnapshotFrame


class FramesAnswer(Schema):
    """A page of frames."""

    snapshot: int = Field(description="The catalog snapshot, of all pages.", examples=[12])
    frames: list[dict[str, Any]] = Field(
        examples=[[{"fkey": "local:a2d2:x.png", "scene": "20180807_145028", "car": 10412}]]
    )
    next: str | None = Field(description="Cursor of the next page; null on the last one.")


class Links(Schema):
    """Where a frame and its pictures are; null where there is no such picture."""

    self: str
    image: str | None
    label: str | None
    overlay: str | None


class FrameAnswer(Schema):
    """One frame."""

    fkey: str = Field(examples=["local:a2d2:x.png"])
    snapshot: int = Field(description="The catalog snapshot.", examples=[12])
    file: dict[str, Any] = Field(
        description="metaocean's columns.", examples=[{"filename": "x.png", "size": 1730212}]
    )
    tags: dict[str, Any] = Field(
        description="Every tag of the catalog, null without a value.", examples=[{"car": 10412}]
    )
    links: Links


def document_of(frame: SnapshotFrame, links: Mapping[str, str | None]) -> dict[str, Any]:
    """A frame as `FrameAnswer` has it; values at hand as JSON are checked no second time."""
    return {
        "fkey": frame.fkey,
        "snapshot": frame.snapshot,
        "file": frame.file,
        "tags": frame.tags,
        "links": links,
    }
