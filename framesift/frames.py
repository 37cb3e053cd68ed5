"""One frame, its pictures, and pages of frames."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import quote

from framesift.forms.gallery import Gallery, Size
from framesift.forms.notebook import frame_html
from framesift.forms.picture import Picture
from framesift.http.transport import Transport
from framesift.question import Names, some_of
from framesift.record import Record

Encoding = Literal["png", "jpeg", "webp"]


class Frame(Record):
    """A camera image with its label: columns and tags by name, class tags in pixels."""

    def __repr__(self) -> str:
        """The fkey."""
        return f"<Frame {self.fkey}>"

    @property
    def fkey(self) -> str:
        """The catalog's unique name of its camera image."""
        return str(self["fkey"])

    def details(self) -> "Frame":
        """The frame with all columns and tags that the catalog has of it."""
        return frame_named(self._transport, self.fkey)

    def image(
        self,
        *,
        width: int | None = None,
        height: int | None = None,
        format: Encoding | None = None,  # noqa: A002
        quality: int | None = None,
    ) -> Picture:
        """The camera image: the file itself, or made again where a size or format is asked for.

        Args:
            width: At most so wide; the shape is kept [pixels].
            height: At most so high [pixels].
            format: How it is encoded; jpeg where only a size is asked for.
            quality: 1 to 100, of jpeg and webp.

        Raises:
            FramesiftServerError: There is none, or the server does not answer.
        """
        return self._picture("images", width=width, height=height, format=format, quality=quality)

    def label(
        self,
        *,
        width: int | None = None,
        height: int | None = None,
        format: Encoding | None = None,  # noqa: A002
    ) -> Picture:
        """The label, in its own colours; arguments as of `image`.

        Raises:
            FramesiftServerError: There is none, or the server does not answer.
        """
        return self._picture("labels", width=width, height=height, format=format)

    def overlay(
        self,
        *,
        classes: Names | None = None,
        alpha: float | None = None,
        width: int | None = None,
        height: int | None = None,
        format: Encoding | None = None,  # noqa: A002
        quality: int | None = None,
    ) -> Picture:
        """The label blended over the camera image; other arguments as of `image`.

        Args:
            classes: Only these, by tag or name; all when None.
            alpha: How much of the label shows, 0 to 1; half by default.
            width: As of `image`.
            height: As of `image`.
            format: As of `image`.
            quality: As of `image`.

        Raises:
            FramesiftServerError: There is none, or the server does not answer.
        """
        return self._picture(
            "overlays",
            classes=",".join(some_of("classes", classes)) or None,
            alpha=alpha,
            width=width,
            height=height,
            format=format,
            quality=quality,
        )

    def prediction(
        self,
        *,
        model: str | None = None,
        job: str | None = None,
        errors: bool = False,
        classes: Names | None = None,
        taken_for: Names | None = None,
        alpha: float | None = None,
        width: int | None = None,
        height: int | None = None,
        format: Encoding | None = None,  # noqa: A002
        quality: int | None = None,
    ) -> Picture:
        """A model's prediction blended over the camera image; other arguments as of `overlay`.

        Args:
            model: The newest by this one.
            job: The one that this prediction job made, or, of another program's predictions, that
                this validation scored; with neither the newest of the frame.
            errors: In its place the pixels of another class than the label.
            classes: As of `overlay`; of errors, those of the label.
            taken_for: Of errors: only pixels that the model took for these classes, by tag or name;
                all when None.
            alpha: As of `overlay`.
            width: As of `image`.
            height: As of `image`.
            format: As of `image`.
            quality: As of `image`.

        Raises:
            NotFound: There is no such prediction of the frame.
            InvalidQuestion: taken_for is given without errors.
        """
        return self._picture(
            "predictions",
            model=model,
            job=job,
            errors="true" if errors else None,
            classes=",".join(some_of("classes", classes)) or None,
            taken_for=",".join(some_of("taken_for", taken_for)) or None,
            alpha=alpha,
            width=width,
            height=height,
            format=format,
            quality=quality,
        )

    def _picture(self, kind: str, **look: object) -> Picture:
        parameters = {name: value for name, value in look.items() if value is not None}
        answer = self._transport.send("GET", f"/v1/{kind}/{_in_path(self.fkey)}", params=parameters)
        return Picture(answer.content, answer.headers.get("content-type", ""))

    def _repr_html_(self) -> str:
        return frame_html(self)


def frame_named(transport: Transport, fkey: str, at: int | None = None) -> Frame:
    """All that the catalog has of a frame.

    Raises:
        FramesiftServerError: There is none of that name, or the server does not answer.
    """
    body = transport.json("GET", f"/v1/frames/{_in_path(fkey)}", query={"at": at})
    return Frame({"fkey": body["fkey"], **body["file"], **body["tags"]}, transport)


class FramePages(Iterator[Frame]):
    """Frames by fkey, fetched a page at a time as they are wanted; all of one snapshot."""

    def __init__(
        self,
        transport: Transport,
        population: Mapping[str, object],
        columns: Sequence[str] | None,
        page: int,
    ) -> None:
        """Nothing is fetched yet; arguments as of `paged_frames`."""
        self._transport, self._population = transport, population
        self._frames = _paged(transport, population, columns, page)

    def __repr__(self) -> str:
        """The server; nothing is fetched."""
        return f"<FramePages of {self._transport.url}>"

    def __next__(self) -> Frame:
        """The next frame.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return next(self._frames)

    def show(
        self,
        limit: int = 24,
        *,
        over: str | None = "label",
        size: Size = "medium",
        captions: Sequence[str] = (),
    ) -> Gallery:
        """The first frames as a gallery for a notebook; they are asked for anew, and none is used.

        Args:
            limit: Most frames of it, 1 to 200.
            over: What lies over each picture: "label", "prediction:MODEL", "errors:MODEL", or None.
            size: "small", "medium" or "large": 160, 240 or 480 pixels.
            captions: Columns and tags whose values stand below each picture.

        Raises:
            ValueError: An argument has no meaning.
        """
        columns = list(dict.fromkeys(("camera", "scene", "frame_number", *captions)))
        page = max(1, min(limit, 1_000))
        return Gallery(
            "frames by fkey", None, _paged(self._transport, self._population, columns, page),
            limit=limit, over=over, size=size, captions=captions, url=self._transport.url,
        )  # fmt: skip


def paged_frames(
    transport: Transport,
    population: Mapping[str, object],
    columns: Sequence[str] | None,
    page: int,
) -> FramePages:
    """Frames by fkey, fetched a page at a time as they are wanted; all of one snapshot.

    Args:
        transport: The server.
        population: Which frames: query parameters of /v1/frames.
        columns: What of each; the server's choice when None.
        page: Frames that are fetched at once.

    Raises:
        FramesiftServerError: The server refuses, or does not answer.
    """
    return FramePages(transport, population, columns, page)


def _paged(
    transport: Transport,
    population: Mapping[str, object],
    columns: Sequence[str] | None,
    page: int,
) -> Iterator[Frame]:
    parameters = {**population, "limit": page}
    if columns is not None:
        parameters["columns"] = ",".join(columns)
    cursor: str | None = None
    while True:
        body = transport.json("GET", "/v1/frames", query={**parameters, "cursor": cursor})
        yield from (Frame(frame, transport) for frame in body["frames"])
        cursor = body["next"]
        if cursor is None:
            return


def _in_path(fkey: str) -> str:
    return quote(fkey, safe="/:")
