"""framesift select, tags list."""

from pathlib import Path
from typing import Annotated

import typer

from api import bodies
from api.commands.common import open_workspace
from api.new_dataset import NewDataset, ask, described, save_selection
from api.question_options import QuestionOptions, question_of, with_question
from api.rows_output import Format, emit_rows, need_file_format
from api.terminal import JsonFlag, emit_json, emit_table, stderr, stdout
from catalog.discover_views import tag_columns
from catalog.errors import InvalidInput
from catalog.tag_kinds import DEFAULT, kinds
from query.condition import leaves
from query.describe import Description
from query.selection import Selection
from query.why_empty import why_empty

AtOption = Annotated[
    int | None, typer.Option(help="Number of the catalog snapshot to ask; else the newest.")
]

tags_app = typer.Typer(no_args_is_help=True, help="Named values on frames.")


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("select")(select)
    app.add_typer(tags_app, name="tags")


@with_question
def select(
    options: QuestionOptions,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            "--show-sql",
            help="Print what the question means, as a sentence and in SQL, in place of its answer.",
        ),
    ] = False,
    save: Annotated[str | None, typer.Option(help="Save the answer as a dataset.")] = None,
    format_: Annotated[Format, typer.Option("--format")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Select labelled frames by what is in them."""
    workspace = open_workspace()
    question = question_of(options)
    need_file_format(out, as_json, format_)
    if explain:
        if save is not None:
            raise InvalidInput(f"--explain asks nothing, so there is no answer to save as {save}")
        _emit_description(described(workspace, question, at), as_json)
        return
    selection = ask(workspace, question, at)
    if save is not None:
        # Before anything is printed: a reader that goes away must not cost the dataset.
        wanted = NewDataset(name=save, question=question, seed=question.seed)
        dataset = save_selection(workspace, wanted, selection)
        stderr.print(
            f"saved as dataset {dataset.name} version {dataset.version}: {dataset.frames:,} frames"
        )
    if not len(selection):
        names = workspace.records.class_names()
        timeout_s = workspace.settings.query_timeout_s
        reason = why_empty(workspace.catalog, selection.question, names, timeout_s)
        stderr.print(f"no frames: {reason}")
    if as_json:
        emit_json(bodies.of_selection(selection, described(workspace, selection.question)))
    elif format_ == "table":
        _emit_selection(selection)
    else:
        emit_rows(selection.frames.schema, selection.frames.to_batches(), format_, out)


@tags_app.command("list")
def tags_list(at: AtOption = None, as_json: JsonFlag = False) -> None:
    """List every tag: its family, type and kind, and the values of a Restricted one."""
    workspace = open_workspace()
    names = workspace.records.class_names()
    with workspace.catalog.reading(at) as cursor:
        found, given = tag_columns(cursor), kinds(cursor)
    listed = [
        {
            "tag": column.tag,
            "family": column.table,
            "type": column.type.lower(),
            "kind": given.get(column.tag, DEFAULT).kind,
            "values": list(given.get(column.tag, DEFAULT).allowed),
            "title": names.get(column.tag, ""),
        }
        for column in found
    ]
    if as_json:
        emit_json(listed)
    else:
        columns = ("tag", "family", "type", "kind", "values", "class")
        emit_table(
            columns,
            [[*list(row.values())[:4], ", ".join(row["values"]), row["title"]] for row in listed],
        )


def _emit_description(found: Description, as_json: bool) -> None:
    if as_json:
        emit_json(bodies.of_description(found))
        return
    stdout.print(found.sentence)
    stdout.print(f"\n{found.sql.text}")
    if found.sql.note:
        stdout.print(f"\n{found.sql.note}")


def _emit_selection(selection: Selection) -> None:
    asked = _asked_tags(selection)
    columns = ["platform", "datasource", "filename", *asked]
    rows = selection.frames.select(columns).to_pylist()
    emit_table(columns, [[row[column] for column in columns] for row in rows])
    stdout.print(f"{len(selection):,} frames, snapshot {selection.snapshot}")


def _asked_tags(selection: Selection) -> list[str]:
    """The classes that the question is about."""
    named = [leaf.tag for leaf in leaves(selection.question.conditions()) if hasattr(leaf, "tag")]
    return [tag for tag in dict.fromkeys(named) if tag in selection.classes]
