"""framesift classes, histogram, facets, correlate, gaps."""

from typing import Annotated, Any

import typer

from api.cli import destination
from api.cli.options.common import AtOption
from api.cli.options.question_options import (
    QuestionOptions,
    question_of,
    with_question,
)
from api.cli.read_answer import read_as
from api.cli.tables.statistics import (
    emit_classes,
    emit_correlation,
    emit_facets,
    emit_gaps,
    emit_histogram,
    emit_report,
)
from api.cli.target import home_session, target
from api.cli.terminal import JsonFlag, emit_json
from api.services.statistics.histogram_axes import BINS, EDGES, LOG, TOP, ZERO, edges_of
from query.question.question import Question
from query.statistics.class_report import ClassesAnswer, ClassReport, Grouping
from query.statistics.correlations import Correlation
from query.statistics.facet_report import FacetReport
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import Histogram

DatasetOption = Annotated[
    str | None, typer.Option(help="Only the frames of this dataset, NAME or NAME@VERSION.")
]
SplitOption = Annotated[str | None, typer.Option(help="Only this split of the dataset.")]
_REPEATABLE = "Repeatable."


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
    question = question_of(options)
    answer = target().statistics.classes(
        question=question, dataset=dataset, split=split, by=by, quantiles=quantiles, at=at
    )
    if question == Question() and (dataset, split, by, quantiles) == (None, None, None, False):
        shares = read_as(ClassesAnswer, answer).classes
        if as_json:
            emit_json([share.model_dump(mode="json", exclude_none=True) for share in shares])
        else:
            emit_classes(shares)
        return
    report = read_as(ClassReport, answer)
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
    bins: Annotated[int | None, typer.Option(help=BINS)] = None,
    top: Annotated[int | None, typer.Option(help=TOP)] = None,
    edges: Annotated[list[str] | None, typer.Option(help=f"{EDGES} {_REPEATABLE}")] = None,
    log: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help=f"{LOG} {_REPEATABLE}")
    ] = None,
    zero: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help=f"{ZERO} {_REPEATABLE}")
    ] = None,
    dataset: DatasetOption = None,
    split: SplitOption = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count the frames by the values of one tag, or of two."""
    answer = target().statistics.histogram(
        *([name] if name2 is None else [name, name2]),
        bins=bins,
        top=top,
        edges=edges_of(edges or ()),
        log=log or (),
        zero=zero or (),
        question=question_of(options),
        dataset=dataset,
        split=split,
        at=at,
    )
    histogram = read_as(Histogram, answer)
    if as_json:
        emit_json(histogram.model_dump(mode="json", exclude_none=True))
    else:
        emit_histogram(histogram)


@with_question
def facets(
    options: QuestionOptions,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG]...", help="Only these tags or classes; else every tag."),
    ] = None,
    dataset: DatasetOption = None,
    split: SplitOption = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count the frames of a question by every tag at once, each under the other conditions."""
    answer = target().statistics.facets(
        *(names or ()), question=question_of(options), dataset=dataset, split=split, at=at
    )
    report = read_as(FacetReport, answer)
    if as_json:
        emit_json(report.model_dump(mode="json", exclude_none=True))
    else:
        emit_facets(report)


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
    answer = _correlation(validation, {"dataset": dataset, "split": split, "at": at})
    correlation = read_as(Correlation, answer)
    if as_json:
        emit_json(correlation.model_dump(mode="json"))
    else:
        emit_correlation(correlation)


def _correlation(validation: str, options: dict[str, Any]) -> object:
    """Shares against IoU, which a file may hold where the command runs on a home."""
    if destination.server() is None:
        return home_session().statistics.correlation(validation, **options, files=True)
    return destination.client().statistics.correlation(validation, **options)


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
    answer = target().statistics.gaps(dataset, split=split, at_least=at_least, scenes=scenes, at=at)
    if isinstance(answer, dict):
        answer.setdefault("split", None)  # a server leaves nulls out
    report = read_as(GapReport, answer)
    if as_json:
        emit_json(report.model_dump(mode="json", exclude_none=True))
    else:
        emit_gaps(report)
