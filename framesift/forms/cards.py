"""Frames as cards with pictures inside the HTML: a notebook's gallery, and that of a report.

Needs the standard library alone: training imports it, too.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

CARD_WIDTH = 240
"""Of a picture of medium size [pixels]."""

# Colours are the page's own: light and dark ones, and those of an editor, differ in no rule.
LINE = "color-mix(in srgb, currentColor 25%, transparent)"
PICTURE = "display:block;width:100%;height:auto;margin:0"
CAPTION = "padding:.3rem .5rem;font-size:12px;line-height:1.35;overflow-wrap:anywhere"
SOFT = "opacity:.8"
_CARD = f"margin:0;border:1px solid {LINE};border-radius:8px;overflow:hidden"


def picture(data: bytes, media_type: str, alt: str) -> str:
    """An image whose bytes are in the page."""
    encoded = base64.b64encode(data).decode("ascii")
    source = f"data:{escape(media_type, quote=True)};base64,{encoded}"
    return f"<img alt='{escape(alt, quote=True)}' src='{source}' style='{PICTURE}'>"


def card(fkey: str, shown: str, words: Iterable[str], values: str = "") -> str:
    """A frame: its pictures, below them what names it, and values.

    Args:
        shown: HTML of its pictures.
        words: Such as camera and scene.
        values: HTML of the second line; nothing where it is empty.
    """
    caption = " · ".join(f"<bdi>{escape(word)}</bdi>" for word in words)
    return (
        f"<figure style='{_CARD}' title='{escape(fkey, quote=True)}'>{shown}"
        f"<figcaption style='{CAPTION}'><span style='{SOFT}'>{caption}</span>"
        f"{'<br>' if values else ''}{values}</figcaption></figure>"
    )


def sheet(cards: Iterable[str], width: int) -> str:
    """Cards beside and below each other, each about so wide [pixels]."""
    columns = f"repeat(auto-fill,minmax(min({width}px,45%),1fr))"
    return (
        f"<div style='display:grid;gap:10px;grid-template-columns:{columns}'>{''.join(cards)}</div>"
    )


def words_of(frame: Mapping[str, Any], fkey: str) -> Sequence[str]:
    """What names a frame below its pictures: camera, number and scene, else its fkey."""
    names = ("camera", "frame_number", "scene")
    return [str(frame[name]) for name in names if frame.get(name) is not None] or [fkey]
