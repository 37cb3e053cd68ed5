"""A gallery of frames for notebooks: pictures, captions and nothing of another host."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any, Literal, Protocol
from urllib.parse import quote

from framesift.errors import FramesiftServerError, NotFound
from framesift.forms.picture import Picture

Size = Literal["small", "medium", "large"]

MOST_FRAMES = 200
MOST_BYTES = 6_000_000
"""Of a gallery's HTML, which a notebook keeps in its file: pictures beyond it are left out."""

_WIDTHS: Mapping[Size, int] = {"small": 160, "medium": 240, "large": 480}
"""Of a picture [pixels]."""

_QUALITY = 75
_AT_ONCE = 4
_LAYERS = "None, 'label', 'prediction:MODEL' or 'errors:MODEL'"

# Colours are the notebook's own: light and dark ones, and those of an editor, differ in no rule.
_LINE = "color-mix(in srgb, currentColor 25%, transparent)"
_CARD = f"margin:0;border:1px solid {_LINE};border-radius:8px;overflow:hidden"
_PICTURE = "display:block;width:100%;height:auto;margin:0"
_CAPTION = "padding:.3rem .5rem;font-size:12px;line-height:1.35;overflow-wrap:anywhere"
_SOFT = "opacity:.8"


class ShownFrame(Protocol):
    """A frame as a gallery needs it: framesift.frames.Frame, which imports this."""

    @property
    def fkey(self) -> str:
        """The catalog's unique name of its camera image."""
        ...

    @property
    def document(self) -> Mapping[str, Any]:
        """Its columns and tags by name."""
        ...

    def image(self, *, width: int, format: Literal["jpeg"], quality: int) -> Picture:  # noqa: A002
        """The camera image, at most so wide [pixels]."""
        ...

    def overlay(self, *, width: int, format: Literal["jpeg"], quality: int) -> Picture:  # noqa: A002
        """The label blended over it."""
        ...

    def prediction(
        self,
        *,
        model: str,
        errors: bool,
        width: int,
        format: Literal["jpeg"],  # noqa: A002
        quality: int,
    ) -> Picture:
        """A model's prediction, or its errors, blended over it."""
        ...


class Gallery:
    """Frames as a sheet of pictures, as the web page shows them; fetched when a notebook draws it.

    The HTML holds its pictures, so that a notebook shows it later, without the server, too.
    """

    def __init__(
        self,
        title: str,
        count: int | None,
        frames: Iterable[ShownFrame],
        *,
        limit: int,
        over: str | None,
        size: Size,
        captions: Sequence[str] = (),
        url: str = "",
    ) -> None:
        """Nothing is fetched yet.

        Args:
            title: What the frames are.
            count: How many there are; None where that is not known.
            frames: The frames; the first ``limit`` are drawn.
            limit: Most frames that are drawn, 1 to MOST_FRAMES.
            over: What lies over each picture: None, ``label``, ``prediction:MODEL`` or
                ``errors:MODEL``. A frame without that prediction shows its image alone.
            size: Of the pictures.
            captions: Columns and tags whose values stand below each picture.
            url: The server's: a picture leads to the frame's page there.

        Raises:
            ValueError: An argument has no meaning.
        """
        if isinstance(limit, bool) or not 1 <= limit <= MOST_FRAMES:
            raise ValueError(f"limit={limit}: expected 1 to {MOST_FRAMES} frames")
        if size not in _WIDTHS:
            raise ValueError(f"size={size!r}: expected {', '.join(_WIDTHS)}")
        layer, _, model = (over or "").partition(":")
        if over is not None and (layer, bool(model)) not in (
            ("label", False), ("prediction", True), ("errors", True),
        ):  # fmt: skip
            raise ValueError(f"over={over!r}: expected {_LAYERS}")
        self._title, self._count, self._frames = title, count, frames
        self._limit, self._size, self._captions, self._url = limit, size, tuple(captions), url
        self._layer, self._model = layer, model

    def __repr__(self) -> str:
        """What it shows; nothing is fetched."""
        if self._count is None:
            return f"<Gallery: at most {self._limit} frames: {self._title}>"
        first = min(self._limit, self._count)
        return f"<Gallery: {first} of {self._count:,} frames: {self._title}>"

    @property
    def html(self) -> str:
        """The gallery as HTML, with its pictures in it; at most MOST_BYTES and the captions.

        Raises:
            FramesiftServerError: The server refuses, or does not answer; a frame alone without a
                picture says so in its place.
        """
        return self._html

    @cached_property
    def _html(self) -> str:
        frames = list(islice(self._frames, self._limit))
        cards, left_out, total = [], 0, 0
        for card in self._cards(frames):
            if total + len(card) > MOST_BYTES:
                left_out += 1
                continue
            total += len(card)
            cards.append(card)
        facts = f"{len(cards):,} of {self._count:,} frames" if self._count is not None else (
            f"{len(cards):,} frames"
        )  # fmt: skip
        if left_out:
            facts += f"; {left_out:,} more would make this larger than {MOST_BYTES // 10**6} MB"
        columns = f"repeat(auto-fill,minmax(min({_WIDTHS[self._size]}px,45%),1fr))"
        return (
            "<section aria-label='Frames'>"
            f"<p style='margin:.3rem 0'><b><bdi>{escape(self._title)}</bdi></b><br>"
            f"<span style='{_SOFT}'>{facts}</span></p>"
            f"<div style='display:grid;gap:10px;grid-template-columns:{columns}'>"
            f"{''.join(cards)}</div></section>"
        )

    def _repr_html_(self) -> str:
        return self.html

    def _cards(self, frames: Sequence[ShownFrame]) -> Iterable[str]:
        if not frames:
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(frames))) as threads:
            yield from threads.map(self._card, frames)

    def _card(self, frame: ShownFrame) -> str:
        words = _words(frame)
        try:
            picture = self._picture(frame)
        except FramesiftServerError as error:
            shown = f"<div style='{_CAPTION};{_SOFT}'>{escape(str(error))}</div>"
        else:
            data = base64.b64encode(picture.data).decode()
            source = f"data:{escape(picture.media_type, quote=True)};base64,{data}"
            alt = escape(" ".join(words), quote=True)
            shown = f"<img alt='{alt}' src='{source}' style='{_PICTURE}'>"
            if self._url:
                page = f"{self._url.rstrip('/')}/frames/{quote(frame.fkey, safe='/:')}"
                shown = f"<a href='{escape(page, quote=True)}'>{shown}</a>"
        caption = " · ".join(f"<bdi>{escape(word)}</bdi>" for word in words)
        values = " · ".join(
            f"{escape(name)} <bdi>{escape(_told(frame.document.get(name)))}</bdi>"
            for name in self._captions
        )
        return (
            f"<figure style='{_CARD}' title='{escape(frame.fkey, quote=True)}'>{shown}"
            f"<figcaption style='{_CAPTION}'><span style='{_SOFT}'>{caption}</span>"
            f"{'<br>' if values else ''}{values}</figcaption></figure>"
        )

    def _picture(self, frame: ShownFrame) -> Picture:
        width = _WIDTHS[self._size]
        if self._layer == "label":
            return frame.overlay(width=width, format="jpeg", quality=_QUALITY)
        if self._layer:
            is_error = self._layer == "errors"
            try:
                return frame.prediction(
                    model=self._model, errors=is_error, width=width, format="jpeg",
                    quality=_QUALITY,
                )  # fmt: skip
            except NotFound:
                pass
        return frame.image(width=width, format="jpeg", quality=_QUALITY)


def _words(frame: ShownFrame) -> list[str]:
    about = frame.document
    words = [str(about[name]) for name in ("camera", "frame_number", "scene")
             if about.get(name) is not None]  # fmt: skip
    return words or [frame.fkey]


def _told(value: object) -> str:
    """A value as a caption has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
