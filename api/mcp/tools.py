"""The tools that assistants are shown. Needs the extra ``mcp``; imported when it is first used."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Annotated, Any, Literal, TypeVar

from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field, ValidationError

from api.frame_images.drawing import Look
from api.frame_images.made_image import MadeImage
from api.http.made_image_answer import made_bytes
from api.http.rules import READ
from api.mcp import answers
from api.mcp.answers import MOST_FRAMES, MOST_ROWS, ToolCaller
from api.services.statistics.histogram_axes import BINS, EDGES, LOG, TOP, ZERO, edges_of
from api.workspace import AWAY
from catalog.errors import FramesiftError, NotAllowed, StoreAway
from catalog.text.bounded import MOST_FEW, Name, Sql, Text
from query.question.question import Question
from query.statistics.class_report import Grouping

_INSTRUCTIONS = """\
Framesift catalogs camera frames of driving recordings: which class (car, bicycle, ...) has how many
pixels in each frame, and tags such as camera, scene and weather. Begin with describe_catalog: its
names are the only ones there are. Ask with select (conditions as data) or sql (one SELECT in Db2's
SQL). Nothing here changes anything: propose_selection gives what a person can look at and save."""

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

_MOST_BINS = 100
"""Most bins of a tag's histogram: an assistant reads them all."""

_WIDEST = 1_024
"""Width of the widest picture [pixels]; larger ones are made smaller before assistants see them."""

_SHOWN = 10
"""Wrong arguments that are listed."""

_ALL = Question()

_T = TypeVar("_T")
CallerOf = Callable[[Context[Any, Any]], Awaitable[ToolCaller]]

QuestionArgument = Annotated[
    Question,
    Field(
        description="Conditions that must all hold. Simple: "
        '{"ranges": [{"tag": "car", "lowest": 10000, "highest": 20000}], "cameras": '
        '["front_center"]} (pixels). Others below condition, or in SQL as where.'
    ),
]
DatasetArgument = Annotated[
    Name | None, Field(description="Only frames of this dataset: NAME, or NAME@VERSION.")
]
SplitArgument = Annotated[Name | None, Field(description="Only this split of it.")]
_OfTags = Annotated[tuple[_T, ...], Field(max_length=2, fail_fast=True)]
"""An option of a histogram that names its tags."""


class Tools:
    """Tools for assistants: every method without an underscore, by its name."""

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of

    async def _answered(self, context: Context[Any, Any], answer: Callable[[ToolCaller], _T]) -> _T:
        caller = None
        try:
            caller = await self._caller_of(context)
            try:
                return await run_in_threadpool(answer, caller)
            except NotAllowed:
                await caller.note_refusal()
                raise
        except FramesiftError as error:
            if caller is not None:
                raise ToolError(caller.error_text(error)) from error
            # Who asks is not known yet.
            raise ToolError(AWAY if isinstance(error, StoreAway) else str(error)) from error

    async def describe_catalog(self, context: Context[Any, Any]) -> dict[str, Any]:
        """List classes with frames and pixel share, tags, cameras, scenes, datasets."""
        return await self._answered(context, answers.catalog_of)

    async def sql(
        self,
        context: Context[Any, Any],
        statement: Annotated[
            Sql,
            Field(
                description="One SELECT in Db2's SQL. metaocean_view has a row per file and a "
                "column per tag; t_<tag> has fkey and value. Tags of frames are null elsewhere."
            ),
        ],
        limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="At most so many rows.")] = 100,
    ) -> dict[str, Any]:
        """The first rows of a statement."""
        return await self._answered(
            context, lambda caller: answers.sql_of(caller, statement, limit)
        )

    async def select(
        self,
        context: Context[Any, Any],
        question: QuestionArgument,
        limit: Annotated[
            int, Field(ge=0, le=MOST_FRAMES, description="At most so many frames are listed.")
        ] = 10,
    ) -> dict[str, Any]:
        """Count labelled frames that answer a question; show its meaning and the first frames."""
        return await self._answered(
            context, lambda caller: answers.selection_of(caller, question, limit)
        )

    async def propose_selection(
        self,
        context: Context[Any, Any],
        question: QuestionArgument,
        name: Annotated[
            str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Of a dataset.")
        ],
    ) -> dict[str, Any]:
        """A selection for a person to look at and save as a dataset. Creates nothing itself."""
        return await self._answered(
            context, lambda caller: answers.proposal_of(caller, question, name)
        )

    async def class_statistics(
        self,
        context: Context[Any, Any],
        question: QuestionArgument = _ALL,
        by: Annotated[Grouping | None, Field(description="Also for each of these.")] = None,
        dataset: DatasetArgument = None,
        split: SplitArgument = None,
    ) -> dict[str, Any]:
        """Frames and share of the pixels of every class that occurs in the frames asked for."""
        return await self._answered(
            context, lambda caller: answers.classes_of(caller, question, by, dataset, split)
        )

    async def histogram(
        self,
        context: Context[Any, Any],
        tags: Annotated[
            list[Name],
            Field(
                min_length=1, max_length=2, fail_fast=True, description="A tag or class; or two."
            ),
        ],
        question: QuestionArgument = _ALL,
        bins: Annotated[int | None, Field(ge=1, le=_MOST_BINS, description=BINS)] = None,
        top: Annotated[int | None, Field(ge=1, le=_MOST_BINS, description=TOP)] = None,
        edges: Annotated[_OfTags[Text], Field(description=EDGES)] = (),
        log: Annotated[_OfTags[Name], Field(description=LOG)] = (),
        zero: Annotated[_OfTags[Name], Field(description=ZERO)] = (),
        dataset: DatasetArgument = None,
        split: SplitArgument = None,
    ) -> dict[str, Any]:
        """Frames by the values of one tag or class (pixels), or of two at once."""

        def answer(caller: ToolCaller) -> dict[str, Any]:
            axes = {"bins": bins, "top": top, "edges": edges_of(edges), "log": log, "zero": zero}
            return answers.histogram_of(caller, tags, question, axes, dataset, split)

        return await self._answered(context, answer)

    async def describe_dataset(
        self,
        context: Context[Any, Any],
        name: Annotated[Name, Field(description="NAME, or NAME@VERSION.")],
    ) -> dict[str, Any]:
        """A dataset: its question, splits, and in how many frames each class is."""
        return await self._answered(context, lambda caller: dict(answers.dataset_of(caller, name)))

    async def gaps(
        self,
        context: Context[Any, Any],
        dataset: Annotated[Name, Field(description="NAME, or NAME@VERSION.")],
        split: SplitArgument = None,
        at_least: Annotated[int, Field(ge=1, description="Frames wanted of each.")] = 1,
        scenes: Annotated[bool, Field(description="Compare scenes, too.")] = False,
    ) -> dict[str, Any]:
        """Gaps of a dataset against the catalog, each with the question that finds frames."""
        return await self._answered(
            context, lambda caller: answers.gaps_of(caller, dataset, split, at_least, scenes)
        )

    async def frame_picture(
        self,
        context: Context[Any, Any],
        fkey: Annotated[Text, Field(description="The frame's fkey, as select gives it.")],
        kind: Annotated[
            Literal["image", "label", "overlay"],
            Field(description="Camera image, label in its colours, or both blended."),
        ] = "image",
        width: Annotated[int, Field(ge=16, le=_WIDEST, description="At most [pixels].")] = 512,
        classes: Annotated[
            list[Name],
            Field(
                max_length=MOST_FEW,
                fail_fast=True,
                description="Of an overlay: only these classes, by tag.",
            ),
        ] = [],  # noqa: B006
    ) -> Image:
        """A frame's picture, made small."""
        look = Look("png" if kind == "label" else "jpeg", width)
        named = ",".join(classes) or None
        picture, cache = await self._answered(
            context,
            lambda caller: (
                _picture(caller, fkey, kind, look, named),
                caller.session.pictures.cache,
            ),
        )
        try:
            return Image(data=await made_bytes(picture, cache), format=look.format)
        except (FramesiftError, HTTPException) as error:
            detail = error.detail if isinstance(error, HTTPException) else str(error)
            raise ToolError(detail) from error


class _Server(MCPServer):
    """Says what is wrong with arguments in one line, without pydantic's help on itself."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        """Call a tool.

        Raises:
            ToolError: There is none of that name, its arguments are wrong, or it fails.
        """
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            wrong = error.__cause__
            if not isinstance(wrong, ValidationError):
                raise
            raise ToolError(f"{name}: {_faults_text(wrong)}") from wrong


def server_of(caller_of: CallerOf) -> MCPServer:
    """A server of all tools.

    Args:
        caller_of: Gives the caller of a call's context. May raise FramesiftError.
    """
    server: MCPServer = _Server(
        "framesift",
        title="Framesift",
        instructions=_INSTRUCTIONS,
        version=version("framesift"),
        log_level="WARNING",
    )
    tools = Tools(caller_of)
    for name in vars(Tools):
        if not name.startswith("_"):
            server.add_tool(getattr(tools, name), annotations=_READS)
    return server


def _faults_text(wrong: ValidationError) -> str:
    faults = wrong.errors(include_input=False)[:_SHOWN]
    paths = (".".join(str(key)[:80] for key in each["loc"]) for each in faults)
    messages = (each["msg"].removeprefix("Value error, ") for each in faults)
    return "; ".join(f"{path}: {why}" for path, why in zip(paths, messages, strict=True))


def _picture(
    caller: ToolCaller, fkey: str, kind: str, look: Look, classes: str | None
) -> MadeImage:
    caller.need(READ)
    if kind == "image":
        return caller.session.pictures.image(fkey, look)
    if kind == "label":
        return caller.session.pictures.label(fkey, look)
    return caller.session.pictures.overlay(fkey, look, classes=classes)
