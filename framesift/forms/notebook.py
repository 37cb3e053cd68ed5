"""Frames, selections and datasets in a notebook: HTML with small pictures in it."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from itertools import islice
from typing import Any, Protocol

from framesift.errors import FramesiftServerError
from framesift.forms.picture import Picture

MOST_PICTURES = 12
_WIDTH = 240
_AT_ONCE = 4
_CARD = (
    f"display:inline-block;width:{_WIDTH}px;margin:0 8px 8px 0;vertical-align:top;"
    "font-size:11px;line-height:1.35;overflow-wrap:anywhere"
)
_GREY = "color:#777"


class DrawnFrame(Protocol):
    """A frame as it is drawn: framesift.frames.Frame, which imports this."""

    @property
    def fkey(self) -> str:
        """The catalog's unique name of its camera image."""
        ...

    @property
    def document(self) -> Mapping[str, Any]:
        """Its columns and tags by name."""
        ...

    def overlay(self, *, width: int) -> Picture:
        """The label blended over the camera image, at most so wide [pixels]."""
        ...


def frames_html(sentence: str, facts: Sequence[str], frames: Iterable[DrawnFrame], sql: str) -> str:
    """Frames as a sheet of small overlays, below what was asked.

    Args:
        sentence: What they are.
        facts: Numbers to be shown below it.
        frames: The frames; the first MOST_PICTURES are drawn.
        sql: The question in SQL, folded away; nothing where it is "".
    """
    drawn = list(islice(frames, MOST_PICTURES))
    folded = f"<details><summary>SQL</summary><pre>{escape(sql)}</pre></details>" if sql else ""
    return (
        f"<div><p><b>{escape(sentence)}</b><br>"
        f"<span style='{_GREY}'>{escape(' · '.join(facts))}</span></p>"
        f"<div>{''.join(_cards(drawn))}</div>{folded}</div>"
    )


def frame_html(frame: DrawnFrame) -> str:
    """One frame: its overlay, and all that is known of it, folded away."""
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(str(name))}</td>"
        f"<td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in frame.document.items()
    )
    return (
        f"<div>{''.join(_cards([frame], 480))}"
        f"<details><summary>{len(frame.document)} columns and tags</summary><table>{rows}</table>"
        "</details></div>"
    )


def rows_html(rows: Sequence[Mapping[str, Any]], below: str) -> str:
    """Rows as a table, with a line below it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(str(value))}</td>' for value in row.values())}</tr>"
        for row in rows
    )
    return f"<div><table><tr>{head}</tr>{lines}</table><p>{escape(below)}</p></div>"


def facts_of_dataset(body: Mapping[str, Any]) -> list[str]:
    """A dataset's numbers."""
    splits = ", ".join(f"{name} {count:,}" for name, count in body["splits"].items())
    return [f"{body['frames']:,} frames", *([splits] if splits else []),
            f"snapshot {body['snapshot']}", f"id {body['id']}"]  # fmt: skip


def _cards(frames: Sequence[DrawnFrame], width: int = _WIDTH) -> list[str]:
    if not frames:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(frames))) as threads:
        return list(threads.map(lambda frame: _card(frame, width), frames))


def _card(frame: DrawnFrame, width: int) -> str:
    try:
        picture = frame.overlay(width=width)
    except FramesiftServerError as error:
        content = f"<div style='{_GREY}'>{escape(str(error))}</div>"
    else:
        data = base64.b64encode(picture.data).decode()
        media_type = escape(picture.media_type, quote=True)
        content = f"<img alt='' src='data:{media_type};base64,{data}' style='width:100%'>"
    card = _CARD.replace(f"width:{_WIDTH}px", f"width:{width}px")
    return (
        f"<div style='{card}' title='{escape(frame.fkey, quote=True)}'>{content}"
        f"<div>{escape(_title(frame))}</div></div>"
    )


def _title(frame: DrawnFrame) -> str:
    about = frame.document
    words = [str(about[name]) for name in ("camera", "scene", "frame_number") if name in about]
    return " ".join(words) or frame.fkey
