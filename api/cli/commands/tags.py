"""framesift tags list, add, group, set, extract, import, import-map, remove, families, drop."""

from collections.abc import Mapping, Sequence
from csv import reader as csv_lines
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import destination
from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.json_report import MOST_PROBLEMS, JsonReport
from api.cli.long_work import extract
from api.cli.options.common import AtOption
from api.cli.options.order_options import argument_of, option_of
from api.cli.progress_bar import progress_bar
from api.cli.tables.table import emit_table
from api.cli.target import Record, home_session, target
from api.cli.terminal import JsonFlag, emit_json, stdout
from api.schemas.home_orders import Extraction
from catalog.errors import InvalidInput, StorageError
from catalog.storage.atomic_write import atomic_path
from catalog.tags.group_text import parse_group
from catalog.tags.tag_rules import DEFAULT, LONGEST, OWN_FAMILY, TYPES
from ingest.imports.options import LATITUDE, LONGITUDE, Key

if TYPE_CHECKING:
    import pyarrow as pa

    from ingest.extractors.run import ExtractCounts

_SHOWN_PROBLEMS = 10


tags_app = typer.Typer(no_args_is_help=True, help="Named values on frames.")

ValuesOption = Annotated[
    list[str] | None,
    typer.Option("--values", help="Values of a Restricted tag: a,b,c; repeatable, quoted as CSV."),
]


@tags_app.command("list")
def tags_list(at: AtOption = None, as_json: JsonFlag = False) -> None:
    """List every tag: its family, type and kind, and the values of a Restricted one."""
    listed: list[Record] = list(target().tags.list(at=at))
    if as_json:
        emit_json(listed)
    else:
        columns = ("tag", "family", "type", "kind")
        emit_table(
            (*columns, "values", "class"),
            [
                [*(row[c] for c in columns), ", ".join(row["values"]), row["title"]]
                for row in listed
            ],
        )


@tags_app.command("add")
def tags_add(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits, '_' and '-'.")],
    type_: Annotated[str, typer.Option("--type", help=f"One of: {', '.join(TYPES)}.")] = "text",
    kind: Annotated[
        str, typer.Option(help="Open (256 characters), Restricted, or Characteristics (4,096).")
    ] = DEFAULT.kind,
    values: ValuesOption = None,
    family: Annotated[str, typer.Option(help="Tag family to put it in.")] = OWN_FAMILY,
    as_json: JsonFlag = False,
) -> None:
    """Add a tag with its type and kind; tags import then gives it values."""
    tag = target().tags.add(name, type_, kind=kind, values=_values(values), family=family)
    _emit_kind(f"added tag {name} to family {family}: {type_}", tag, as_json)


@tags_app.command("group")
def tags_group(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG = CLASS + CLASS...]", help="The group, as tags or names."),
    ] = None,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Define a tag that is the sum of the pixels of classes, or list those that there are.

    framesift tags group vehicle = car + truck + bus; framesift tags remove vehicle removes it.
    """
    if not words:
        listed: list[Record] = list(target().tags.groups(at=at))
        if as_json:
            emit_json(listed)
        else:
            rows = [(row["tag"], " + ".join(row["classes"])) for row in listed]
            emit_table(("tag", "classes"), rows)
        return
    if at is not None:
        raise InvalidInput("tags group: a group is defined in the newest snapshot; leave out --at")
    group = target().tags.group(*parse_group(" ".join(words)))
    if as_json:
        emit_json(group)
    else:
        stdout.print(f"{group['tag']} = {' + '.join(group['classes'])}")


@tags_app.command("set")
def tags_set(
    names: Annotated[
        list[str], typer.Argument(metavar="TAG | FKEY... TAG=VALUE...", help="What to change.")
    ],
    kind: Annotated[str | None, typer.Option(help=f"One of: {', '.join(LONGEST)}.")] = None,
    values: ValuesOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Change a tag's kind or values, or give frames values of tags.

    A tag's kind by --kind is refused if files have values that are then not allowed. Frames are
    named by their fkeys: framesift tags set FKEY... quality=bad; quality= takes the value away.
    A new tag becomes one of the users' own.
    """
    marks = dict(pair for name in names if (pair := _mark(name)) is not None)
    fkeys = [name for name in names if _mark(name) is None]
    if marks and kind is None and not values:
        counts = target().tags.mark(fkeys, marks)
        if as_json:
            emit_json(counts)
        else:
            assignments = ", ".join(f"{tag}={value}" for tag, value in marks.items())
            stdout.print(f"set {assignments} on {counts['imported']:,} frames")
        return
    if kind is None or marks or len(names) > 1:
        raise InvalidInput(
            "tags set: expected a tag with --kind, or fkeys and then TAG=VALUE, such as "
            "'framesift tags set FKEY quality=bad'"
        )
    answer = target().tags.set(names[0], kind, values=_values(values))
    _emit_kind(f"tag {names[0]}", answer, as_json)


def _mark(text: str) -> tuple[str, str] | None:
    """Tag and value of TAG=VALUE; None of an fkey, which has colons before any equals sign."""
    tag, equals, value = text.partition("=")
    return (tag.lower(), value) if equals and ":" not in tag else None


def _values(texts: list[str] | None) -> list[str]:
    """Values given as lines of CSV."""
    return [value.strip() for line in texts or () for value in next(csv_lines([line]), [])]


def _emit_kind(what: str, tag: Record, as_json: bool) -> None:
    if as_json:
        emit_json({name: tag[name] for name in ("tag", "kind", "values")})
    else:
        values = f" ({', '.join(tag['values'])})" if tag["values"] else ""
        stdout.print(f"{what}, {tag['kind']}{values}")


@tags_app.command("values")
def tags_values(
    name: Annotated[str, typer.Argument(help="The tag.")],
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many values.")] = 100,
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the most frequent values of a tag, and how many files have each."""
    answer = target().tags.values(name, at=at, limit=limit)
    if as_json:
        emit_json(answer)
        return
    values = answer["values"]
    emit_table(("value", "files"), [(each["value"], each["files"]) for each in values])
    if answer["distinct"] > len(values):
        stdout.print(f"and {answer['distinct'] - len(values):,} more values: --limit")


@tags_app.command("extract")
def tags_extract(
    source: Annotated[str, argument_of(Extraction, "source")],
    names: Annotated[list[str] | None, argument_of(Extraction, "extractors")] = None,
    own: Annotated[list[str] | None, option_of(Extraction, "own")] = None,
    full: Annotated[bool, option_of(Extraction, "full")] = Extraction.full,
    workers: Annotated[int, option_of(Extraction, "workers")] = Extraction.workers,
    errors: Annotated[bool, option_of(Extraction, "errors")] = Extraction.errors,
    as_json: JsonFlag = False,
) -> None:
    """Read tags from the files of every catalogued frame: only new and changed ones.

    Bad files are recorded and skipped. With --json, progress goes to the
    error output as a JSON line every few seconds.
    """
    extraction = Extraction(
        source=source, extractors=names or (), own=own or (), full=full, workers=workers,
        errors=errors,
    )  # fmt: skip
    report = JsonReport()

    def show(family: str, counts: "ExtractCounts | None") -> None:
        if counts is None:
            bar.show(0, None, family)
            return
        bar.show(counts.read, counts.to_read, f"{counts.read:,} of {counts.to_read:,} frames")
        if as_json:
            ends = counts.read == counts.to_read
            report.progress({"family": family, **asdict(counts)}, is_last=ends)

    read, done = extract(extraction, show), []
    while True:
        with progress_bar(f"tags of {source}", quiet=as_json) as bar:
            extracted = next(read, None)
        if extracted is None:
            break
        if as_json:
            done.append({**extracted, "problems": extracted["problems"][:MOST_PROBLEMS]})
        elif errors:
            rows = [(extracted["family"], p["key"], p["reason"]) for p in extracted["problems"]]
            emit_table(("family", "file", "reason"), rows)
        else:
            _emit_extracted(extracted)
    if as_json:
        emit_json(done)


def _emit_extracted(counts: Mapping[str, Any]) -> None:
    rate = counts["read"] / counts["seconds"] if counts["seconds"] else 0.0
    stdout.print(
        f"tag family {counts['family']} of {counts['source']}: {counts['read']:,} frames read in "
        f"{counts['seconds']:.1f} s ({rate:.0f} frames/s), {counts['tagged']:,} tagged, "
        f"{counts['bad_files']:,} with a bad file; {counts['without_file']:,} of "
        f"{counts['frames']:,} frames lack the file"
    )
    bad = counts["problems"]
    _show_problems(
        [f"bad_file: {p['key']}: {p['reason']}" for p in bad[:_SHOWN_PROBLEMS]],
        len(bad),
        f"framesift tags extract {counts['source']} --errors",
    )


@tags_app.command("import")
def tags_import(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet; its columns become tags.")],
    family: Annotated[str, typer.Option(help="Tag family to write.")],
    key: Annotated[
        Key | None,
        typer.Option(
            help="What names a file: its name, its path with name, or its fkey; its fkey where "
            "the table has that column, else its name."
        ),
    ] = None,
    key_column: Annotated[
        str | None, typer.Option(help="Column of the key; else one of the key's name, or the first")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="TAG=TYPE; repeatable; else inferred.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Put before every tag's name.")] = "",
    datasource: Annotated[
        str | None, typer.Option(help="Match files of this datasource only.")
    ] = None,
    rejected: Annotated[
        Path | None, typer.Option(help="Write every row not imported to this CSV file.")
    ] = None,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Import tags from a table; rows that match no file, or several, are reported."""
    try:
        result = target().tags.import_values(
            file,
            family,
            key=key,
            key_column=key_column,
            type=types or (),
            prefix=prefix,
            datasource=datasource,
        )
    except OSError as error:  # of a file that is sent to a server
        raise StorageError(
            f"{file}: cannot be read: {error.strerror or error}", str(file)
        ) from error
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    if rejected is not None:
        _write_csv(_rejected(result), rejected)
    if as_json:
        emit_json(result)
    else:
        _emit_import(family, result)
    left_out = result["rows"] - result["imported"]
    end(ExitCode.BAD_FILES, when=strict and left_out > 0)


def _rejected(result: Record) -> "pa.Table":
    """Every row that was not imported; of a server's import the first thousand."""
    import pyarrow as pa

    from api.schemas.tags import ImportBody

    if isinstance(result, ImportBody):
        return result.rejected
    problems = result["problems"]
    names = list(problems[0]) if problems else ["line", "key", "kind", "reason"]
    return pa.table({name: [row[name] for row in problems] for name in names})


def _emit_import(family: str, result: Record) -> None:
    stdout.print(
        f"imported {result['imported']:,} of {result['rows']:,} rows into tag family {family}: "
        f"{len(result['columns']):,} tags; {result['unmatched']:,} rows name no file, "
        f"{result['ambiguous']:,} several, {result['repeated']:,} one named before, "
        f"{result['unreadable']:,} cannot be read"
    )
    for note in result["notes"]:
        stdout.print(f"  {note}")
    problems = result["problems"][:_SHOWN_PROBLEMS]
    _show_problems(
        [f"line {row['line']}: {row['key']}: {row['reason']}" for row in problems],
        result["rows"] - result["imported"],
        "--rejected FILE",
    )


@tags_app.command("import-map")
def tags_import_map(
    features: Annotated[Path, typer.Argument(help="GeoJSON or GeoParquet, WGS 84.")],
    family: Annotated[str, typer.Option(help="Tag family to write.")],
    within: Annotated[float, typer.Option(metavar="METRES", help="How near counts [m].")],
    tag: Annotated[
        str | None, typer.Option(help="near_<TAG> and <TAG>_distance_m; else the family's name.")
    ] = None,
    latitude: Annotated[str, typer.Option(help="Tag of the latitude [degrees].")] = LATITUDE,
    longitude: Annotated[str, typer.Option(help="Tag of the longitude [degrees].")] = LONGITUDE,
    as_json: JsonFlag = False,
) -> None:
    """Tag the frames that were taken near features of a map, such as bridges."""
    result = _import_map(
        features, family, within, {"tag": tag, "latitude": latitude, "longitude": longitude}
    )
    if as_json:
        emit_json(result)
        return
    stdout.print(
        f"{result['near']:,} of {result['frames']:,} frames with a position lie within "
        f"{within:g} m of one of {result['features']:,} features: tags "
        f"{', '.join(result['columns'])}"
    )


def _import_map(file: Path, family: str, within_m: float, options: dict[str, Any]) -> Record:
    """Join a map, which is read where the command runs."""
    if destination.server() is None:
        return home_session().tags.import_map(file, family, within_m, **options)
    from ingest.imports.map_file import read_features

    features = read_features(file).tolist()
    return destination.client().tags.import_map(features, family, within_m, **options)


@tags_app.command("import-scores")
def tags_import_scores(
    job: Annotated[str, typer.Argument(help="A validation or a prediction that is done.")],
    as_json: JsonFlag = False,
) -> None:
    """Make scores of frames tags of their model: select --model MODEL --tag accuracy<0.8."""
    written = target().tags.import_scores(job)
    if as_json:
        emit_json(written)
        return
    emit_scores(written)


def emit_scores(written: Record) -> None:
    """Say what an import of scores wrote, and how to ask for it."""
    unknown = written["unknown"]
    stdout.print(
        f"scores of {written['frames']:,} frames, with {written['cells']:,} cells of what was "
        f"taken for what, are tags of model {written['model']}"
        + (f"; {unknown:,} frames are not in the catalog" if unknown else "")
    )
    unlabelled, labelled = written["unlabelled"], ""
    if unlabelled:
        labelled = " --tag labelled=0"
        stdout.print(f"{unlabelled:,} of these frames have no label")
    # Predictions may say classes alone, and frames may lack a label.
    examples = {"uncertainty": "uncertainty>=0.4", "accuracy": "accuracy<0.8"}
    for tag in [text for score, text in examples.items() if score in written["scores"]][:1]:
        stdout.print(
            f"framesift select --model {written['model']} --tag '{tag}'{labelled} asks for them"
        )
    stdout.print(f"framesift tags drop {written['family']} removes them")


@tags_app.command("families")
def tags_families(as_json: JsonFlag = False) -> None:
    """List the tag families that extractors and imports wrote."""
    families: list[Record] = list(target().tags.families())
    if as_json:
        emit_json(families)
        return
    emit_table(
        ("family", "tags", "rows", "names"),
        [(f["name"], len(f["columns"]), f["rows"], ", ".join(f["columns"])) for f in families],
    )


@tags_app.command("remove")
def tags_remove(
    name: Annotated[str, typer.Argument(help="The tag.")], as_json: JsonFlag = False
) -> None:
    """Remove a tag with its values; older snapshots keep it."""
    removed = target().tags.remove(name)
    if as_json:
        emit_json(removed)
    else:
        stdout.print(f"removed tag {name}: {removed['files']:,} files had a value")


@tags_app.command("drop")
def tags_drop(
    family: Annotated[str, typer.Argument(help="The tag family.")], as_json: JsonFlag = False
) -> None:
    """Remove a tag family; older snapshots keep it."""
    dropped = target().tags.drop(family)
    if as_json:
        emit_json(dropped)
    else:
        stdout.print(f"dropped tag family {family}: {dropped['rows']:,} rows")


def _show_problems(lines: Sequence[str], total: int, how: str) -> None:
    for line in lines:
        stdout.print(f"  {line}")
    if total > len(lines):
        stdout.print(f"  and {total - len(lines):,} more: {how}")


def _write_csv(rows: "pa.Table", out: Path) -> None:
    from pyarrow import csv

    with atomic_path(out) as temporary:
        csv.write_csv(rows, temporary)
