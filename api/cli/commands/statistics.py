"""framesift classes, histogram, correlate, gaps."""

from dataclasses import asdict
from typing import Annotated

import typer

from api.cli.commands.common import AtOption
from api.cli.commands.statistics_tables import (
    emit_classes,
    emit_correlation,
    emit_gaps,
    emit_histogram,
    emit_report,
)
from api.cli.question_options import (
    QuestionOptions,
    question_of,
    with_question,
)
from api.cli.terminal import JsonFlag, emit_json
from api.places.statistics import Asked, Axes, statistics
from query.frames.selection import Question
from query.statistics.class_report import Grouping

DatasetOption = Annotated[
    str | None, typer.Option(help="Only the frames of this dataset, NAME or NAME@VERSION.")
]
SplitOption = Annotated[str | None, typer.Option(help="Only this split of the dataset.")]


@with_question
def classes(
    options: QuestionOptions,
    by: Annotated[Grouping | None, typer.Option(help="Also for each camera or scene.")] = None,
    quantiles: Annotated[
        bool, typer.Option("--quantiles", help="Also quantiles, where the class is present.")
    ] = False,
    dataset: DatasetOption = None,
    split: SplitOption = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show for every class the frames that contain it, and its share of all pixels."""
    place, question = statistics(), question_of(options)
    if question == Question() and (dataset, split, by, quantiles) == (None, None, None, False):
        shares = place.shares(at)
        if as_json:
            emit_json([asdict(share) for share in shares])
        else:
            emit_classes(shares)
        return
    report = place.classes(Asked(question, dataset, split, at), by, quantiles)
    if as_json:
        emit_json(report.model_dump(mode="json", exclude_none=True))
    else:
        emit_report(report)


@with_question
def histogram_(
    name: Annotated[str, typer.Argument(metavar="TAG", help="A tag, class name or column.")],
    options: QuestionOptions,
    name2: Annotated[
        str | None, typer.Argument(metavar="TAG2", help="Another one, for a table of both.")
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="Bins of a number; 20, or 8 of two tags.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Most frequent texts; 20, or 8 of two tags.")
    ] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option(help="TAG=EDGE,EDGE,...: edges of a tag's bins, rising; repeatable."),
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option(help="Tag with bins of equal ratio; repeatable.")
    ] = None,
    zero: Annotated[
        list[str] | None, typer.Option(help="Tag with a bin for 0 alone; repeatable.")
    ] = None,
    dataset: DatasetOption = None,
    split: SplitOption = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count the frames by the values of one tag, or of two."""
    tags = [name] if name2 is None else [name, name2]
    found = statistics().histogram(
        Asked(question_of(options), dataset, split, at),
        Axes(tags, bins, top, edges or (), log or (), zero or ()),
    )
    if as_json:
        emit_json(found.model_dump(mode="json", exclude_none=True))
    else:
        emit_histogram(found)


def correlate(
    validation: Annotated[
        str,
        typer.Argument(
            help="A validation job, a training job (its newest validation), or a report.json."
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(help="Whose shares; the model's training set, or else the catalog's."),
    ] = None,
    split: SplitOption = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare the classes' shares of the pixels with the IoU that a model has for each."""
    found = statistics().correlation(validation, Asked(dataset=dataset, split=split, at=at))
    if as_json:
        emit_json(found.model_dump(mode="json"))
    else:
        emit_correlation(found)


def gaps(
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    at_least: Annotated[
        int, typer.Option(min=1, help="Frames wanted of each class and camera.")
    ] = 1,
    split: SplitOption = None,
    scenes: Annotated[bool, typer.Option("--scenes", help="Scenes, too.")] = False,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a dataset lacks that the catalog has, and how to select it."""
    report = statistics().gaps(Asked(dataset=dataset, split=split, at=at), at_least, scenes)
    if as_json:
        emit_json(report.model_dump(mode="json", exclude_none=True))
    else:
        emit_gaps(report)
