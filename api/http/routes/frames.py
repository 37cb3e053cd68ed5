"""/v1/frames and their pictures: /v1/images, /v1/labels, /v1/overlays.

Kinds of pictures are resources of their own: an fkey may end in anything, so nothing behind it
could be told from it.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.frame_images.drawing import Format, Look
from api.frame_images.source_file import SourceFile
from api.http.asked_frames import AskedFrames
from api.http.bytes_answer import CHUNK, Content, bytes_answer, unchanged
from api.http.dependencies import At, CurrentSession
from api.http.made_image_answer import made_answer
from api.http.negotiation import (
    VARY,
    accepted,
    row_contents,
    row_format,
    rows_answer,
    wanted,
)
from api.http.openapi.examples import EXAMPLE_FRAME, OF_PICTURES
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.frames import FrameAnswer, FramesAnswer, document_of
from catalog.errors import BadFile
from ingest.images.camera_image import BEGIN_BYTES, MEDIA_TYPES, media_type
from query.frames.frame_page import DEFAULT_COLUMNS, Page
from query.frames.one_frame import SnapshotFrame

router = Router(prefix="/v1", tags=["frames"])

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])

_MOST_FRAMES = 10_000
_LONGEST_SIDE = 8_192

Fkey = Annotated[
    str,
    Path(
        description="The frame's fkey; its slashes and colons may stay as they are.",
        examples=["local:a2d2:camera_lidar_semantic/20180807_145028/camera/cam_front_center/x.png"],
    ),
]


class FramesQuery(AskedFrames):
    """The frames, and their columns; all labelled frames where nothing is asked."""

    columns: str | None = Field(
        default=None,
        description="Columns of metaocean and tags, with commas between; fkey is always there.",
        examples=["scene,camera,car"],
    )
    limit: int = Field(default=100, ge=1, le=_MOST_FRAMES, description="Frames of one page.")
    cursor: str | None = Field(
        default=None,
        max_length=20_000,
        description="`next` of the page before; the other parameters stay.",
    )

    def page(self) -> dict[str, Any]:
        """The page that is asked for, as arguments of api.services.frames."""
        return {
            "cursors_of": self.model_dump_json(exclude={"columns", "limit", "cursor"}),
            "columns": self.columns.split(",") if self.columns is not None else DEFAULT_COLUMNS,
            "limit": self.limit,
            "cursor": self.cursor,
            **self.which(),
        }


class ImageQuery(BaseModel):
    """The look of a picture. It is made smaller to fit, keeps its shape, never grows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int | None = Field(default=None, ge=1, le=_LONGEST_SIDE, description="At most [pixels].")
    height: int | None = Field(default=None, ge=1, le=_LONGEST_SIDE, description="As `width`.")
    format: Format | None = Field(default=None, description="jpeg by default; of labels png.")
    quality: int | None = Field(
        default=None, ge=1, le=100, description="Of jpeg and webp; 85 by default."
    )

    @property
    def is_original(self) -> bool:
        """True where nothing is asked for but the file."""
        return (self.width, self.height, self.format, self.quality) == (None,) * 4

    def look(self, request: Request, formats: tuple[Format, ...]) -> Look:
        """The same, with a format: by default the one of these that Accept prefers."""
        kind = self.format
        if kind is None:
            kinds = {f"image/{one}": one for one in formats}
            kind = kinds[accepted(request, list(kinds))]
        return Look(kind, self.width, self.height, self.quality)


class OverlayQuery(ImageQuery):
    """The look of an overlay."""

    alpha: float = Field(
        default=0.5, ge=0, le=1, allow_inf_nan=False, description="How much of the label shows."
    )
    classes: str | None = Field(
        default=None,
        description="Only these: tags or names of classes, with commas between.",
        examples=["car,bicycle"],
    )


_PAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The page; in other formats than JSON its rows.",
        "headers": {
            "Link": {
                "description": "Of other formats than JSON: the next page, rel=next.",
                "schema": {"type": "string"},
            },
            "Framesift-Snapshot": {
                "description": "Of other formats than JSON: the catalog snapshot.",
                "schema": {"type": "integer"},
            },
        },
        "content": row_contents({}, EXAMPLE_FRAME),
    },
    406: {"description": "Accept names no format that the server has."},
}

_PICTURES: dict[str, Any] = {
    f"image/{kind}": {"schema": {"type": "string", "format": "binary"}}
    for kind in ("png", "jpeg", "webp")
}
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture.",
        "content": _PICTURES,
    },
    206: {"description": "The range of it that was asked for.", "content": _PICTURES},
    304: {"description": "The client has it: If-None-Match names its ETag."},
    406: {"description": "Accept names no format that the server has."},
    404: {"description": "There is no such frame, it has no such picture, or its file is gone."},
    416: {"description": "The range lies beyond the end."},
    422: {"description": "A file is damaged or too large to be drawn, or the sizes differ."},
    502: {"description": "The source does not answer."},
    503: {"description": "Too many pictures are being drawn."},
}


@router.get(
    "/frames", rule=READ.but(work="selection"), response_model=FramesAnswer, responses=_PAGE
)
def get_frames(
    request: Request, query: Annotated[FramesQuery, Query()], session: CurrentSession
) -> Response:
    """A page of the frames that answer a question, by fkey; `next` is the next one's cursor.

    All pages are of the snapshot that the first one was of. Other formats than JSON hold the rows
    alone: there the next page is in the header Link.
    """
    format_ = row_format(request)
    page, follows = session.frames.page(**query.page())
    if format_ != "json":
        return rows_answer(format_, page.rows, _beside(request, page, follows))
    return _in_json(page, follows)


def _beside(request: Request, page: Page, follows: str | None) -> dict[str, str]:
    """Headers of a page that is no JSON."""
    headers = {"Framesift-Snapshot": str(page.snapshot)}
    if follows is not None:
        url = request.url.include_query_params(cursor=follows)
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    return headers


def _in_json(page: Page, follows: str | None) -> Response:
    """The page, which is at hand as JSON: it is checked no second time."""
    body = {"snapshot": page.snapshot, "frames": page.frames, "next": follows}
    return JSONResponse(body, headers=VARY)


@router.get("/frames/{fkey:path}", rule=READ.but(work="selection"), response_model=FrameAnswer)
def get_frame(fkey: Fkey, session: CurrentSession, at: At = None) -> Response:
    """Everything known of one frame: metaocean's columns, every tag, links to its pictures."""
    frame = session.frames.get(fkey, at=at)
    return JSONResponse(document_of(frame, _links(frame)))


def _links(frame: SnapshotFrame) -> dict[str, str | None]:
    """Paths of a frame and of those of its pictures that there are."""
    name = quote(frame.fkey, safe="/:")
    has_image, has_label = frame.image is not None, frame.label is not None

    def link(route: str, *, is_there: bool) -> str | None:
        return str(router.url_path_for(route, fkey=name)) if is_there else None

    return {
        "self": link("get_frame", is_there=True),
        "image": link("get_image", is_there=has_image),
        "label": link("get_label", is_there=has_label),
        "overlay": link("get_overlay", is_there=has_image and has_label),
    }


def picture_route(router: Router, path: str) -> Callable[[_Endpoint], _Endpoint]:
    """Declares a picture's route, for GET and HEAD."""
    rule = READ.but(work="picture", compressed=False)

    def declare(endpoint: _Endpoint) -> _Endpoint:
        router.get(
            path,
            rule=rule,
            response_class=Response,
            responses=_PICTURE,
            openapi_extra=OF_PICTURES,
        )(endpoint)
        router.head(path, rule=rule, include_in_schema=False)(endpoint)
        return endpoint

    return declare


@picture_route(router, "/images/{fkey:path}")
async def get_image(
    request: Request,
    fkey: Fkey,
    query: Annotated[ImageQuery, Query()],
    session: CurrentSession,
) -> Response:
    """The camera image: the file itself, or made again where a size or format is asked for."""
    pictures = session.pictures
    if query.is_original:
        original = await _original(request, pictures.image_file, fkey, [*MEDIA_TYPES])
        if original is not None:
            return original
    look = query.look(request, ("jpeg", "webp", "png"))
    image = await run_in_threadpool(pictures.image, fkey, look)
    return await made_answer(request, image, pictures.cache)


@picture_route(router, "/labels/{fkey:path}")
async def get_label(
    request: Request,
    fkey: Fkey,
    query: Annotated[ImageQuery, Query()],
    session: CurrentSession,
) -> Response:
    """The label: the file itself, or made again in its own colours, png or webp without loss."""
    pictures = session.pictures
    if query.is_original:
        original = await _original(request, pictures.label_file, fkey, ["image/png"])
        if original is not None:
            return original
    look = query.look(request, ("png", "webp"))
    label = await run_in_threadpool(pictures.label, fkey, look)
    return await made_answer(request, label, pictures.cache)


@picture_route(router, "/overlays/{fkey:path}")
async def get_overlay(
    request: Request,
    fkey: Fkey,
    query: Annotated[OverlayQuery, Query()],
    session: CurrentSession,
) -> Response:
    """The label blended over the camera image, all of it or some classes."""
    pictures = session.pictures
    look = query.look(request, ("jpeg", "webp", "png"))
    overlay = await run_in_threadpool(pictures.overlay, fkey, look, query.alpha, query.classes)
    return await made_answer(request, overlay, pictures.cache)


async def _original(
    request: Request, file_of: Callable[[str], SourceFile], fkey: str, kinds: Sequence[str]
) -> Response | None:
    """The file itself, whatever is preferred: it loses nothing.

    Its content says its media type: its name may end in anything.

    Args:
        kinds: Media types that it may have.

    Returns:
        None where Accept allows none of them, or not the file's.
    """
    accept = ", ".join(request.headers.getlist("accept"))
    if wanted(accept, kinds) is None:
        return None
    file = await run_in_threadpool(file_of, fkey)
    etag, size = f'"{file.identity[:32]}"', file.entry.size
    known = unchanged(request, etag)
    if known is not None:
        return known
    is_all = request.method == "GET" and "range" not in request.headers
    first = await run_in_threadpool(file.read, 0, min(CHUNK if is_all else BEGIN_BYTES, size))
    kind = media_type(first)
    if kind is None or kind not in kinds:
        names = " or ".join(MEDIA_TYPES[one] for one in kinds)
        raise BadFile(f"is no {names} image any more; scan its source", file.entry.key)
    if wanted(accept, [kind]) is None:
        return None

    def read(start: int, length: int) -> bytes:
        is_read = start + length <= len(first)
        return first[start : start + length] if is_read else file.read(start, length)

    return await bytes_answer(request, Content(kind, size, etag, read))
