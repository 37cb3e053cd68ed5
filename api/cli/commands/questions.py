"""framesift question save, list, show, seen, remove."""

from typing import Annotated

import typer

from api.cli.options.question_options import QuestionOptions, question_of, with_question
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, emit_json, stdout

question_app = typer.Typer(no_args_is_help=True, help="Questions that are saved under a name.")

_NameArgument = Annotated[str, typer.Argument(help="The saved question.")]


@question_app.command("save")
@with_question
def save(
    name: Annotated[str, typer.Argument(help="Its name.")],
    options: QuestionOptions,
    shared: Annotated[bool, typer.Option("--shared", help="Let other users see it.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Save a question under a name, with the number of its frames."""
    saved = target().saved_questions.save(
        name, question_of(options).model_dump(mode="json", exclude_defaults=True), shared=shared
    )
    if as_json:
        emit_json(saved)
    else:
        stdout.print(f"saved question {name}: {saved['frames']:,} frames")


@question_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the saved questions: yours, and those that others share."""
    questions: list[Record] = list(target().saved_questions.list())
    if as_json:
        emit_json(questions)
        return
    rows = [
        (row["name"], row["owner"], "yes" if row["shared"] else "", row["seen_frames"], row["seen"])
        for row in questions
    ]
    emit_table(("name", "owner", "shared", "frames seen", "when"), rows)


@question_app.command("show")
def show(name: _NameArgument, as_json: JsonFlag = False) -> None:
    """Show a saved question, and how many frames answer it now."""
    _emit(target().saved_questions.get(name), as_json)


@question_app.command("seen")
def seen(name: _NameArgument, as_json: JsonFlag = False) -> None:
    """Keep the number of its frames now as the one that you saw last."""
    _emit(target().saved_questions.see(name), as_json)


@question_app.command("remove")
def remove(name: _NameArgument) -> None:
    """Remove a saved question."""
    target().saved_questions.remove(name)
    stdout.print(f"removed question {name}")


def _emit(question: Record, as_json: bool) -> None:
    if as_json:
        emit_json(question)
        return
    before = question["seen_frames"]
    more = "" if before is None else f" ({question['frames'] - before:+,} since {question['seen']})"
    stdout.print(f"question {question['name']}: {question['frames']:,} frames{more}")
