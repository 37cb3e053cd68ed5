"""A gallery of frames for notebooks: pictures, captions and nothing of another host."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any, Literal, Protocol
from urllib.parse import quote

from framesift.errors import FramesiftServerError, NotFound
from framesift.forms.cards import CAPTION, CARD_WIDTH, SOFT, card, picture, sheet, words_of
from framesift.forms.picture import Picture

Size = Literal["small", "medium", "large"]

MOST_FRAMES = 200
MOST_BYTES = 6_000_000
"""Of a gallery's HTML, which a notebook keeps in its file: pictures beyond it are left out."""

_WIDTHS: Mapping[Size, int] = {"small": 160, "medium": CARD_WIDTH, "large": 480}
"""Of a picture [pixels]."""

_QUALITY = 75
_AT_ONCE = 4
_LAYERS = "None, 'label', 'prediction:MODEL' or 'errors:MODEL'"


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
        known: Collection[str] | None = None,
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
            known: The columns and tags that the frames have; None where the server says it.
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
        names = tuple(dict.fromkeys(name.strip().lower() for name in captions))
        if known is not None:
            _check_captions(names, known)
        self._limit, self._size, self._captions, self._url = limit, size, names, url
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
        for one in self._cards(frames):
            if total + len(one) > MOST_BYTES:
                left_out += 1
                continue
            total += len(one)
            cards.append(one)
        facts = f"{len(cards):,} of {self._count:,} frames" if self._count is not None else (
            f"{len(cards):,} frames"
        )  # fmt: skip
        if left_out:
            facts += f"; {left_out:,} more would make this larger than {MOST_BYTES // 10**6} MB"
        return (
            "<section aria-label='Frames'>"
            f"<p style='margin:.3rem 0'><b><bdi>{escape(self._title)}</bdi></b><br>"
            f"<span style='{SOFT}'>{facts}</span></p>"
            f"{sheet(cards, _WIDTHS[self._size])}</section>"
        )

    def _repr_html_(self) -> str:
        return self.html

    def _cards(self, frames: Sequence[ShownFrame]) -> Iterable[str]:
        if not frames:
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(frames))) as threads:
            yield from threads.map(self._card, frames)

    def _card(self, frame: ShownFrame) -> str:
        words = words_of(frame.document, frame.fkey)
        try:
            made = self._picture(frame)
        except FramesiftServerError as error:
            shown = f"<div style='{CAPTION};{SOFT}'>{escape(str(error))}</div>"
        else:
            shown = picture(made.data, made.media_type, " ".join(words))
            if self._url:
                page = f"{self._url.rstrip('/')}/frames/{quote(frame.fkey, safe='/:')}"
                shown = f"<a href='{escape(page, quote=True)}'>{shown}</a>"
        values = " · ".join(
            f"{escape(name)} <bdi>{escape(_told(frame.document.get(name)))}</bdi>"
            for name in self._captions
        )
        return card(frame.fkey, shown, words, values)

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


def _check_captions(names: Sequence[str], known: Collection[str]) -> None:
    """Go on only where frames have these columns and tags.

    Raises:
        ValueError: They lack one.
    """
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 3)
            advice = f"did you mean {' or '.join(near)}? " if near else ""
            raise ValueError(
                f"captions={name!r}: {advice}The frames have {', '.join(sorted(known))}; "
                "select(..., columns=[...]) has them have other tags, too"
            )


def _told(value: object) -> str:
    """A value as a caption has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
