"""framesift sql, select, classes, tags."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from api import bodies
from api.commands.common import open_workspace
from api.new_dataset import NewDataset, ask, save_selection
from api.terminal import JsonFlag, emit_json, emit_table, stderr, stdout
from catalog.discover_views import tag_columns
from catalog.errors import InvalidInput, StorageError
from catalog.frames import class_shares
from catalog.tag_kinds import DEFAULT, kinds
from query.label_range import LabelRange, validation_message
from query.result_format import plain, to_csv, to_records
from query.run_sql import run_sql
from query.selection import Question, Selection

AtOption = Annotated[
    int | None, typer.Option(help="Number of the catalog snapshot to ask; else the newest.")
]
Format = Literal["table", "csv", "json", "parquet", "arrow"]

tags_app = typer.Typer(no_args_is_help=True, help="Named values on frames.")


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("sql")(sql)
    app.command("select")(select)
    app.command("classes")(classes)
    app.add_typer(tags_app, name="tags")


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT; '-' reads it from stdin.")],
    format_: Annotated[
        Format, typer.Option("--format", help="csv is what Spectrum Discover answers.")
    ] = "csv",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask the catalog in Db2's SQL, over metaocean, metaocean_view and t_<tag>."""
    _need_file_format(out, False, "json" if as_json else format_)
    workspace = open_workspace()
    settings = workspace.settings
    result = run_sql(
        workspace.catalog,
        sys.stdin.read() if statement == "-" else statement,
        at=at,
        max_rows=settings.query_max_rows,
        timeout_s=settings.query_timeout_s,
    )
    _emit_rows(result.rows, "json" if as_json else format_, out)
    if result.truncated:
        stderr.print(f"only the first {settings.query_max_rows:,} rows (FRAMESIFT_QUERY_MAX_ROWS)")


RangeOption = Annotated[
    list[str] | None,
    typer.Option("--range", help="CLASS=LOWEST:HIGHEST in pixels; repeatable, ends may be open."),
]
WhereOption = Annotated[str | None, typer.Option(help='A condition, such as "car>=10000".')]
CameraOption = Annotated[
    list[str] | None, typer.Option(help="Camera, such as front_center; repeatable.")
]
SceneOption = Annotated[list[str] | None, typer.Option(help="Scene; repeatable.")]
OrderOption = Annotated[
    list[str] | None, typer.Option(help="Tag to order by, with ' desc' for falling; repeatable.")
]
LimitOption = Annotated[int | None, typer.Option(help="At most so many frames.")]
SampleOption = Annotated[int | None, typer.Option(help="So many of them at random.")]
SeedOption = Annotated[int, typer.Option(help="Seed of sample and split.")]


def question_of(
    ranges: list[str] | None,
    where: str | None,
    cameras: list[str] | None,
    scenes: list[str] | None,
    order: list[str] | None,
    limit: int | None,
    sample: int | None,
    seed: int,
) -> Question:
    """The question that a command's options ask.

    Raises:
        InvalidInput: An option's value cannot be used.
    """
    parsed = tuple(LabelRange.parse(text) for text in ranges or ())
    try:
        return Question(
            ranges=parsed,
            where=where,
            cameras=tuple(cameras or ()),
            scenes=tuple(scenes or ()),
            order=tuple(order or ()),
            limit=limit,
            sample=sample,
            seed=seed,
        )
    except ValueError as error:
        raise InvalidInput(validation_message(error)) from error


def select(
    ranges: RangeOption = None,
    where: WhereOption = None,
    camera: CameraOption = None,
    scene: SceneOption = None,
    order: OrderOption = None,
    limit: LimitOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    save: Annotated[str | None, typer.Option(help="Save the answer as a dataset.")] = None,
    format_: Annotated[Format, typer.Option("--format")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Select labelled frames by what is in them."""
    workspace = open_workspace()
    question = question_of(ranges, where, camera, scene, order, limit, sample, seed)
    _need_file_format(out, as_json, format_)
    selection = ask(workspace, question, at)
    if save is not None:
        # Before anything is printed: a reader that goes away must not cost the dataset.
        wanted = NewDataset(name=save, question=question, seed=seed)
        dataset = save_selection(workspace, wanted, selection)
        stderr.print(
            f"saved as dataset {dataset.name} version {dataset.version}: {dataset.frames:,} frames"
        )
    if as_json:
        emit_json(bodies.of_selection(selection))
    elif format_ == "table":
        _emit_selection(selection)
    else:
        _emit_rows(selection.frames, format_, out)


def classes(at: AtOption = None, as_json: JsonFlag = False) -> None:
    """Show for every class the frames that contain it, and its share of all pixels."""
    workspace = open_workspace()
    shares = class_shares(workspace.catalog, workspace.records.class_names(), at)
    if as_json:
        emit_json([asdict(share) for share in shares])
        return
    emit_table(
        ("tag", "class", "frames", "share %", "share % where present"),
        [
            (s.tag, s.name, s.frames, f"{100 * s.share:.4f}", f"{100 * s.share_where_present:.4f}")
            for s in shares
        ],
    )


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


def _need_file_format(out: Path | None, to_terminal: bool, format_: Format) -> None:
    """Refuse a file where the answer would go to the terminal all the same."""
    if out is not None and (to_terminal or format_ == "table"):
        raise InvalidInput(
            f"--out {out}: a file needs --format csv, json, parquet or arrow, without --json"
        )


def _emit_selection(selection: Selection) -> None:
    asked = [found.tag for found in selection.question.ranges if found.tag in selection.classes]
    columns = ["platform", "datasource", "filename", *asked]
    rows = selection.frames.select(columns).to_pylist()
    emit_table(columns, [[row[column] for column in columns] for row in rows])
    stdout.print(f"{len(selection):,} frames, snapshot {selection.snapshot}")


def _emit_rows(rows: pa.Table, format_: Format, out: Path | None) -> None:
    if format_ in ("parquet", "arrow"):
        if out is None:
            raise InvalidInput(f"format {format_} is binary: give a file with --out FILE")
        _write_aside(out, lambda part: _write_binary(rows, format_, part))
        return
    if format_ == "table":
        columns = rows.column_names
        emit_table(columns, [[plain(row[c]) for c in columns] for row in rows.to_pylist()])
        return
    if out is not None:
        _write_aside(out, lambda part: part.write_text(_text(rows, format_), encoding="utf-8"))
    elif format_ == "json":
        emit_json(to_records(rows))
    else:
        for line in to_csv(rows):
            typer.echo(line, nl=False)


def _text(rows: pa.Table, format_: Format) -> str:
    return json.dumps(to_records(rows), indent=2) if format_ == "json" else "".join(to_csv(rows))


def _write_binary(rows: pa.Table, format_: Format, part: Path) -> None:
    if format_ == "parquet":
        pq.write_table(rows, part, compression="zstd")
        return
    with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


def _write_aside(out: Path, write: Callable[[Path], Any]) -> None:
    part = out.with_name(out.name + ".part")
    try:
        write(part)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"{out}: cannot be written: {error.strerror}", str(out)) from error
