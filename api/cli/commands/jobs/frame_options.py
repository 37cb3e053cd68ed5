"""The options of a job that begins with a question, in a dataset's place."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from api.cli.options.grouped_options import with_options
from api.cli.options.question_options import (
    CameraOption,
    LimitOption,
    QuestionFileOption,
    QuestionOptions,
    RangeOption,
    SampleOption,
    SceneOption,
    SqlOption,
    WhereOption,
    question_of,
)

SaveAsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The dataset that chosen frames become; by default the job's name, or predict-MODEL.",
    ),
]
EvictFlag = Annotated[
    bool,
    typer.Option("--evict", help="Remove the dataset from the cache when the job is done."),
]
MigrateFlag = Annotated[
    bool,
    typer.Option(
        "--migrate", help="Have the dataset's files migrated back to tape when the job is done."
    ),
]


@dataclass(frozen=True)
class FrameOptions:
    """Options that choose a job's frames; every condition must hold."""

    ranges: RangeOption = None
    where: WhereOption = None
    sql: SqlOption = None
    camera: CameraOption = None
    scene: SceneOption = None
    question: QuestionFileOption = None
    limit: LimitOption = None
    sample: SampleOption = None
    save_as: SaveAsOption = None
    evict: EvictFlag = False
    migrate: MigrateFlag = False


with_frame_options = with_options("frame_options", FrameOptions)
"""Give a command all of FrameOptions' options in place of its parameter ``frame_options``."""


def dataset_or_question(dataset: str | None, frame_options: FrameOptions) -> Mapping[str, Any]:
    """The dataset or question that a job works on, as options of the method that begins it."""
    known = {field.name for field in fields(QuestionOptions)}
    conditions = {
        field.name: value
        for field in fields(frame_options)
        if field.name in known and (value := getattr(frame_options, field.name)) is not None
    }
    chosen: dict[str, Any] = {"dataset": dataset}
    if conditions:
        chosen["question"] = question_of(QuestionOptions(**conditions))
    if frame_options.save_as is not None:
        chosen["save_as"] = frame_options.save_as
    if frame_options.evict:
        chosen["evict"] = True
    if frame_options.migrate:
        chosen["migrate"] = True
    return chosen
