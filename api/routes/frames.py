"""/v1/frames and their pictures: /v1/images, /v1/labels, /v1/overlays.

Kinds of pictures are resources of their own: an fkey may end in anything, so nothing behind it
could be told from it.
"""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.asked_frames import AskedFrames
from api.dependencies import At, CurrentWorkspace
from api.frame_images.answer import Content, bytes_answer
from api.frame_images.drawing import Format, Look
from api.frame_images.made_image import made_answer
from api.frame_images.pictures import (
    both_files,
    cache_of,
    frame_of,
    image_file,
    label_file,
    made_image,
    made_label,
    made_overlay,
)
from api.frame_images.source_file import SourceFile
from api.workspace import Workspace
from query.frame_page import DEFAULT_COLUMNS, Place, page_of
from query.one_frame import FoundFrame

router = APIRouter(prefix="/v1", tags=["frames"])

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
    """Which frames, and what of each; all labelled ones where nothing is asked."""

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


class ImageQuery(BaseModel):
    """How a picture is to come out. It is made smaller to fit, keeps its shape, never grows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int | None = Field(default=None, ge=1, le=_LONGEST_SIDE, description="At most [pixels].")
    height: int | None = Field(default=None, ge=1, le=_LONGEST_SIDE, description="As `width`.")
    format: Format | None = Field(default=None, description="jpeg by default; of labels png.")
    quality: int | None = Field(
        default=None, ge=1, le=100, description="Of jpeg and webp; 85 by default."
    )

    @property
    def is_original(self) -> bool:
        """Whether nothing is asked for but the file."""
        return (self.width, self.height, self.format, self.quality) == (None,) * 4

    def look(self, default: Format) -> Look:
        """The same, with a format."""
        return Look(self.format or default, self.width, self.height, self.quality)


class OverlayQuery(ImageQuery):
    """How an overlay is to come out."""

    alpha: float = Field(
        default=0.5, ge=0, le=1, allow_inf_nan=False, description="How much of the label shows."
    )
    classes: str | None = Field(
        default=None,
        description="Only these: tags or names of classes, with commas between.",
        examples=["car,bicycle"],
    )


class FramesAnswer(BaseModel):
    """A page of frames."""

    snapshot: int = Field(description="The catalog snapshot, of all pages.", examples=[12])
    frames: list[dict[str, Any]] = Field(
        examples=[[{"fkey": "local:a2d2:x.png", "scene": "20180807_145028", "car": 10412}]]
    )
    next: str | None = Field(description="Cursor of the next page; null on the last one.")


class Links(BaseModel):
    """Where a frame and its pictures are; null where there is no such picture."""

    self: str
    image: str | None
    label: str | None
    overlay: str | None


class FrameAnswer(BaseModel):
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


_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture.",
        "content": {f"image/{kind}": {} for kind in ("png", "jpeg", "webp")},
    },
    206: {"description": "The range of it that was asked for."},
    304: {"description": "The client has it: If-None-Match names its ETag."},
    404: {"description": "There is no such frame, it has no such picture, or its file is gone."},
    416: {"description": "The range lies beyond the end."},
    422: {"description": "A file is damaged or too large to be drawn, or the sizes differ."},
    502: {"description": "The source does not answer."},
    503: {"description": "Too many pictures are being drawn."},
}


@router.get("/frames", response_model=FramesAnswer)
async def get_frames(
    asked: Annotated[FramesQuery, Query()], workspace: CurrentWorkspace
) -> Response:
    """A page of the frames that answer a question, by fkey; `next` is the next one's cursor.

    All pages are of the snapshot that the first one was of.
    """
    body = await run_in_threadpool(_page, workspace, asked)
    return await run_in_threadpool(JSONResponse, body)  # at hand as JSON: checked no second time


@router.get("/frames/{fkey:path}", response_model=FrameAnswer)
async def get_frame(fkey: Fkey, workspace: CurrentWorkspace, at: At = None) -> Response:
    """Everything known of one frame: metaocean's columns, every tag, links to its pictures."""
    frame = await run_in_threadpool(frame_of, workspace, fkey, at)
    return JSONResponse(_body(frame))


@router.head("/images/{fkey:path}", include_in_schema=False)
@router.get("/images/{fkey:path}", response_class=Response, responses=_PICTURE)
async def get_image(
    request: Request,
    fkey: Fkey,
    asked: Annotated[ImageQuery, Query()],
    workspace: CurrentWorkspace,
) -> Response:
    """The camera image: the file itself, or made anew where a size or format is asked for."""
    file = await run_in_threadpool(image_file, workspace, fkey)
    if asked.is_original:
        return await _original(request, file)
    return await made_answer(request, made_image(file, asked.look("jpeg")), cache_of(workspace))


@router.head("/labels/{fkey:path}", include_in_schema=False)
@router.get("/labels/{fkey:path}", response_class=Response, responses=_PICTURE)
async def get_label(
    request: Request,
    fkey: Fkey,
    asked: Annotated[ImageQuery, Query()],
    workspace: CurrentWorkspace,
) -> Response:
    """The label: the file itself, or made anew in its own colours, png or webp without loss."""
    file = await run_in_threadpool(label_file, workspace, fkey)
    if asked.is_original:
        return await _original(request, file)
    return await made_answer(request, made_label(file, asked.look("png")), cache_of(workspace))


@router.head("/overlays/{fkey:path}", include_in_schema=False)
@router.get("/overlays/{fkey:path}", response_class=Response, responses=_PICTURE)
async def get_overlay(
    request: Request,
    fkey: Fkey,
    asked: Annotated[OverlayQuery, Query()],
    workspace: CurrentWorkspace,
) -> Response:
    """The label blended over the camera image, all of it or some classes."""
    files = await run_in_threadpool(both_files, workspace, fkey)
    made = made_overlay(files, asked.look("jpeg"), asked.alpha, asked.classes)
    return await made_answer(request, made, cache_of(workspace))


def _page(workspace: Workspace, asked: FramesQuery) -> dict[str, Any]:
    question = asked.model_dump_json(exclude={"columns", "limit", "cursor"})
    names = asked.columns.split(",") if asked.columns is not None else DEFAULT_COLUMNS
    page = page_of(
        workspace.catalog,
        asked.frames(workspace),
        workspace.records.class_names(),
        [name.strip().lower() for name in names if name.strip()],
        asked.limit,
        Place.parse(asked.cursor, question) if asked.cursor is not None else None,
        workspace.settings.query_timeout_s,
    )
    follows = None if page.last is None else Place(page.snapshot, page.last).cursor(question)
    return {"snapshot": page.snapshot, "frames": page.frames, "next": follows}


def _body(frame: FoundFrame) -> dict[str, Any]:
    name = quote(frame.fkey, safe="/:")
    both = frame.image is not None and frame.label is not None
    return {
        "fkey": frame.fkey,
        "snapshot": frame.snapshot,
        "file": frame.file,
        "tags": frame.tags,
        "links": {
            "self": f"/v1/frames/{name}",
            "image": f"/v1/images/{name}" if frame.image is not None else None,
            "label": f"/v1/labels/{name}" if frame.label is not None else None,
            "overlay": f"/v1/overlays/{name}" if both else None,
        },
    }


async def _original(request: Request, file: SourceFile) -> Response:
    etag = f'"{file.identity[:32]}"'
    # Scans take PNG files for images and labels, and no others.
    return await bytes_answer(request, Content("image/png", file.entry.size, etag, file.read))
