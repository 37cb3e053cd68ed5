"""The options that ask a question, the same at every command that takes one."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.options.grouped_options import with_options
from api.cli.terminal import stderr
from catalog.errors import InvalidInput, StorageError
from query.question.operators import OPERATORS

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from query.question.condition import Group, Leaf
    from query.question.label_range import LabelRange
    from query.question.question import Question

_Texts = list[str] | None


RangeOption = Annotated[
    _Texts,
    typer.Option(
        "--range",
        help="CLASS=LOWEST:HIGHEST in pixels; either end may be open; CLASS=N is exactly N; "
        "repeatable.",
    ),
]
WhereOption = Annotated[str | None, typer.Option(help='A condition, such as "car>=10000".')]
SqlOption = Annotated[
    str | None,
    typer.Option(
        "--sql",
        help="A SELECT whose rows name the frames: by fkey, or by filename with path, datasource "
        "and platform.",
    ),
]
CameraOption = Annotated[_Texts, typer.Option(help="Camera, such as front_center; repeatable.")]
SceneOption = Annotated[_Texts, typer.Option(help="Scene; repeatable.")]
QuestionFileOption = Annotated[
    str | None,
    typer.Option(help="File with a question as JSON, '-' for stdin; options add to it."),
]
LimitOption = Annotated[int | None, typer.Option(help="At most this many frames.")]
SampleOption = Annotated[int | None, typer.Option(help="Choose this many at random.")]


@dataclass(frozen=True)
class QuestionOptions:
    """The question of a command's options; every condition must hold."""

    ranges: RangeOption = None
    has: Annotated[_Texts, typer.Option("--has", help="Class that must be in the frame.")] = None
    without: Annotated[
        _Texts, typer.Option("--without", help="Class that must not be in the frame.")
    ] = None
    share: Annotated[
        _Texts,
        typer.Option("--share", help="CLASS=LOWEST:HIGHEST of the frame's pixels, 0 to 1."),
    ] = None
    tag: Annotated[
        _Texts,
        typer.Option(
            "--tag", help=f"Any tag compared, such as 'speed>=30': {', '.join(OPERATORS)}."
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option("--time", help="FROM:TO of the recording's start, such as 2018-08:2018-10."),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="A model whose scores were imported: uncertainty, margin, miou, accuracy and loss "
            "are its own; --where takes confusion(TRUTH, PREDICTED)."
        ),
    ] = None
    where: WhereOption = None
    sql: SqlOption = None
    camera: CameraOption = None
    scene: SceneOption = None
    question: QuestionFileOption = None
    order: Annotated[
        _Texts, typer.Option(help="Tag to order by, with ' desc' for falling; repeatable.")
    ] = None
    limit: LimitOption = None
    sample: SampleOption = None
    seed: Annotated[int | None, typer.Option(help="Seed of sample and split; 0 unless given.")] = (
        None
    )


def question_of(options: QuestionOptions) -> "Question":
    """The question that a command's options ask.

    Conditions are added to those of the file; order, limit, sample, seed and model take its place.

    Raises:
        InvalidInput: An option's value cannot be used, or the file holds no question.
    """
    from query.question.question import Question
    from query.question.wrong_value import input_errors

    base = _from_file(options.question) if options.question is not None else Question()
    added = {
        "ranges": (*base.ranges, *map(_range, options.ranges or ())),
        "where": _both(base.where, options.where),
        "sql": _one_statement(base.sql, options.sql),
        "condition": _all(base, _conditions(options)),
        "order": tuple(options.order) if options.order else base.order,
        "limit": base.limit if options.limit is None else options.limit,
        "sample": base.sample if options.sample is None else options.sample,
        "seed": base.seed if options.seed is None else options.seed,
        "model": base.model if options.model is None else options.model,
    }
    with input_errors():
        if options.question is None:
            names = {"cameras": options.camera or (), "scenes": options.scene or ()}
            return Question.model_validate(added | names)
        return Question.model_validate(dict(base) | added)


with_question = with_options("options", QuestionOptions)
"""Give a command all of QuestionOptions' options in place of its parameter ``options``."""


def _range(text: str) -> "LabelRange":
    """A range; one that may have been meant as its lowest end is told to be exact."""
    from query.question.label_range import LabelRange

    pixels = LabelRange.parse(text)
    if pixels.lowest == pixels.highest and pixels.lowest and ":" not in text:
        stderr.print(
            f"--range {text}: exactly {pixels.lowest:,} pixels; {text}: means so many or more"
        )
    return pixels


def _conditions(options: QuestionOptions) -> "list[Leaf]":
    from query.question.condition import CameraIn, Has, SceneIn, Without
    from query.question.condition_text import parse_share, parse_tag, parse_time

    conditions: list[Leaf] = [Has(kind="has", tag=name) for name in options.has or ()]
    conditions += [Without(kind="without", tag=name) for name in options.without or ()]
    conditions += [parse_share(text) for text in options.share or ()]
    conditions += [parse_tag(text) for text in options.tag or ()]
    if options.time is not None:
        conditions.append(parse_time(options.time))
    if options.question is not None:  # beside the file's own
        if options.camera:
            conditions.append(CameraIn(kind="camera", names=tuple(options.camera)))
        if options.scene:
            conditions.append(SceneIn(kind="scene", names=tuple(options.scene)))
    return conditions


def _all(base: "Question", added: "list[Leaf]") -> "Leaf | Group | None":
    from query.question.condition import Group

    conditions = [*([] if base.condition is None else [base.condition]), *added]
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Group(kind="all", of=tuple(conditions))


def _one_statement(of_file: str | None, sql: str | None) -> str | None:
    from framesift.errors import InvalidQuestion
    from framesift.question import check_statement

    if sql is None:
        return of_file
    if of_file is not None:
        raise InvalidInput("--sql: the file's question has a statement, too; leave one of them out")
    try:
        check_statement(sql)
    except InvalidQuestion as error:
        raise InvalidInput(str(error)) from error
    return sql


def _both(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return other if one is None else one
    return f"({one}\n) and ({other}\n)"


def _from_file(name: str) -> "Question":
    from query.question.question import Question
    from query.question.wrong_value import input_errors

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StorageError(f"{name}: cannot be read: {error.strerror}", name) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name}: is no text: expected a question as JSON") from error
    with input_errors(f"{name}: is no question: "):
        return Question.model_validate_json(text)
