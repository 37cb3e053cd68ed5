"""framesift select."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.answer_frames import asked, batches_of, json_of, rows_of
from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.options.common import AtOption
from api.cli.options.question_options import QuestionOptions, question_of, with_question
from api.cli.rows_output import Format, emit_rows, need_file_format
from api.cli.tables.table import emit_table
from api.cli.target import Answer, Record, target
from api.cli.terminal import JsonFlag, emit_json, emit_text, stderr, stdout
from catalog.errors import InvalidInput

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from query.question.question import Question


@with_question
def select(
    options: QuestionOptions,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            "--show-sql",
            help="Print the question as a sentence and in SQL instead of running it.",
        ),
    ] = False,
    save: Annotated[str | None, typer.Option(help="Save the answer as a dataset.")] = None,
    format_: Annotated[Format, typer.Option("--format")] = "table",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="Columns and tags, such as fkey,filename,car; repeatable. In a table else the "
            "file's name and the classes asked for, in other formats all but other tags.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    at: AtOption = None,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Select labelled frames by what is in them."""
    question = question_of(options)
    need_file_format(out, as_json, format_)
    if explain:
        if save is not None:
            raise InvalidInput(f"--explain asks nothing, so there is no answer to save as {save}")
        _emit_meaning(target().selections.describe(question, at=at), as_json)
        return
    names = _listed(columns or ())
    answer = asked(question, at, names, only=save is None and not as_json)
    if save is not None:
        # Before anything is printed: a reader that goes away must not cost the dataset.
        dataset = answer.save(save)
        stderr.print(
            f"saved as dataset {dataset['name']} version {dataset['version']}: "
            f"{dataset['frames']:,} frames"
        )
    if not len(answer):
        stderr.print(f"no frames: {answer.why_empty}")
    elif answer.left_out:
        stderr.print(answer.left_out)
    if as_json:
        for piece in json_of(answer, names):
            emit_text(piece)
        emit_text("\n")
    elif format_ == "table":
        _emit_answer(answer, names or _usual(question, answer.classes))
    else:
        emit_rows(*batches_of(answer, names), format_, out)
    end(ExitCode.NOTHING_FOUND, when=strict and not len(answer))


def _listed(texts: Sequence[str]) -> list[str]:
    names = [name.strip().lower() for text in texts for name in text.split(",")]
    return [name for name in dict.fromkeys(names) if name]


def _emit_meaning(description: Record, as_json: bool) -> None:
    if as_json:
        emit_json(description)
        return
    stdout.print(description["sentence"])
    stdout.print(f"\n{description['sql']}")
    if description["note"]:
        stdout.print(f"\n{description['note']}")


def _usual(question: "Question", classes: Sequence[str]) -> list[str]:
    return ["platform", "datasource", "filename", *_asked_tags(question, classes)]


def _emit_answer(answer: Answer, columns: Sequence[str]) -> None:
    emit_table(columns, rows_of(answer, columns))
    stdout.print(f"{len(answer):,} frames, snapshot {answer.snapshot}")


def _asked_tags(question: "Question", classes: Sequence[str]) -> list[str]:
    """The classes that the question is about."""
    from query.question.condition import leaves

    named = [leaf.tag for leaf in leaves(question.conditions()) if hasattr(leaf, "tag")]
    return [tag for tag in dict.fromkeys(named) if tag in classes]
