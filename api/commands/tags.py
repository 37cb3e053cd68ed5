"""framesift tags add, set, extract, import, import-map, families, drop."""

from collections.abc import Mapping, Sequence
from csv import reader as csv_lines
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from pyarrow import csv

from api.commands.common import open_workspace
from api.commands.query import tags_app
from api.places import tags as places
from api.places.tags import NewTag, Table
from api.terminal import JsonFlag, emit_json, emit_table, progress_bar, stdout
from catalog import families, tags
from catalog.errors import InvalidInput, StorageError
from catalog.extractions import problems
from catalog.tables import Source
from catalog.tag_kinds import DEFAULT, LONGEST
from ingest.extractors.base import Extractor
from ingest.extractors.registry import extractor_in_file, extractor_named, known_extractors
from ingest.extractors.run import ExtractCounts, extraction_of, run_extractor
from ingest.map_join import LATITUDE, LONGITUDE, import_map
from ingest.sources import open_recorded
from ingest.tag_import import Key

_SHOWN_PROBLEMS = 10
_JSON_PROBLEMS = 1_000


def register(_app: typer.Typer) -> None:
    """Add this subject's commands to `framesift tags`; a second call adds nothing."""
    present = {command.name for command in tags_app.registered_commands}
    for name, command in (
        ("add", tags_add),
        ("set", tags_set),
        ("extract", tags_extract),
        ("import", tags_import),
        ("import-map", tags_import_map),
        ("families", tags_families),
        ("drop", tags_drop),
    ):
        if name not in present:
            tags_app.command(name)(command)


ValuesOption = Annotated[
    list[str] | None,
    typer.Option("--values", help="Values of a Restricted tag: a,b,c; repeatable, quoted as CSV."),
]


def tags_add(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits, '_' and '-'.")],
    type_: Annotated[
        str, typer.Option("--type", help=f"One of: {', '.join(tags.TYPES)}.")
    ] = "text",
    kind: Annotated[
        str, typer.Option(help="Open (256 characters), Restricted, or Characteristics (4,096).")
    ] = DEFAULT.kind,
    values: ValuesOption = None,
    family: Annotated[str, typer.Option(help="Tag family to put it in.")] = tags.OWN_FAMILY,
    as_json: JsonFlag = False,
) -> None:
    """Add a tag with its type and kind; tags import then gives it values."""
    wanted = NewTag(name, type_, kind, _values(values), family)
    kept = places.tags().add(wanted)
    _emit_kind(f"added tag {name} to family {family}: {type_}", kept, as_json)


def tags_set(
    name: Annotated[str, typer.Argument(help="The tag.")],
    kind: Annotated[str, typer.Option(help=f"One of: {', '.join(LONGEST)}.")],
    values: ValuesOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Give a tag another kind or other values; refused where files have values it would refuse."""
    kept = tags.set_kind(open_workspace().catalog, name, kind, _values(values))
    body = {"tag": name, "kind": kept.kind, "values": list(kept.allowed)}
    _emit_kind(f"tag {name}", body, as_json)


def _values(texts: list[str] | None) -> list[str]:
    """Values given as lines of CSV."""
    return [value.strip() for line in texts or () for value in next(csv_lines([line]), [])]


def _emit_kind(what: str, kept: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        emit_json(kept)
    else:
        values = f" ({', '.join(kept['values'])})" if kept["values"] else ""
        stdout.print(f"{what}, {kept['kind']}{values}")


def tags_extract(
    source: Annotated[str, typer.Argument(help="The source.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="EXTRACTOR...", help="Such as bus or image.")
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option("--extractor", help="FILE.py:CLASS, an extractor of your own; repeatable."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Read frames done before, too.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Frames read at once.")] = 2,
    errors: Annotated[
        bool, typer.Option("--errors", help="List the files that were bad, and read nothing.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Read tags from the files of every catalogued frame: only new and changed ones.

    Bad files are recorded and passed over: the run goes on.
    """
    workspace = open_workspace()
    found = workspace.records.source(source)
    chosen = [extractor_named(name) for name in names or ()]
    chosen += [extractor_in_file(place) for place in own or ()]
    if not chosen:
        known = ", ".join(sorted(known_extractors()))
        raise InvalidInput(f"no extractor given: known are {known}; or --extractor FILE.py:CLASS")
    done = []
    for extractor in chosen:
        family = extractor.family
        if not errors:
            counts = _extract(found, extractor, full, workers, as_json)
            done.append({"source": source, "family": family, **asdict(counts)})
        bad = problems(workspace.catalog, extraction_of(found, extractor))
        if as_json:
            listed = [asdict(problem) for problem in bad]
            done = done if not errors else [*done, {"source": source, "family": family}]
            done[-1]["problems"] = listed[:_JSON_PROBLEMS]
        elif errors:
            emit_table(("family", "file", "reason"), [(family, p.key, p.reason) for p in bad])
        else:
            _show_problems(
                [f"bad_file: {p.key}: {p.reason}" for p in bad[:_SHOWN_PROBLEMS]],
                len(bad),
                f"framesift tags extract {source} --errors",
            )
    if as_json:
        emit_json(done)


def _extract(
    source: Source, extractor: Extractor, full: bool, workers: int, as_json: bool
) -> ExtractCounts:
    with progress_bar(f"{extractor.family} of {source.name}", quiet=as_json) as bar:

        def show(so_far: ExtractCounts) -> None:
            bar.show(so_far.read, so_far.to_read, f"{so_far.read:,} of {so_far.to_read:,} frames")

        workspace = open_workspace()
        counts = run_extractor(
            workspace.catalog,
            source,
            extractor,
            files=open_recorded(source, workspace.indexes),
            full=full,
            workers=workers,
            progress=show,
        )
    if not as_json:
        rate = counts.read / counts.seconds if counts.seconds else 0.0
        stdout.print(
            f"tag family {extractor.family} of {source.name}: {counts.read:,} frames read in "
            f"{counts.seconds:.1f} s ({rate:.0f} frames/s), {counts.tagged:,} tagged, "
            f"{counts.bad_files:,} with a bad file; {counts.without_file:,} of {counts.frames:,} "
            "frames lack the file"
        )
    return counts


def tags_import(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet; its columns become tags.")],
    family: Annotated[str, typer.Option(help="Tag family to write.")],
    key: Annotated[
        Key,
        typer.Option(help="What names a file: its name, its path with name, or its fkey."),
    ] = "filename",
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
    as_json: JsonFlag = False,
) -> None:
    """Import tags from a table; rows that match no file, or several, are reported."""
    table = Table(file, family, key, key_column, types or (), prefix, datasource)
    result, problems = places.tags().import_table(table)
    if rejected is not None:
        _write_csv(problems, rejected)
    if as_json:
        emit_json(result)
        return
    stdout.print(
        f"imported {result['imported']:,} of {result['rows']:,} rows into tag family {family}: "
        f"{len(result['columns']):,} tags; {result['unmatched']:,} rows name no file, "
        f"{result['ambiguous']:,} several, {result['repeated']:,} one named before, "
        f"{result['unreadable']:,} cannot be read"
    )
    shown = problems.slice(0, _SHOWN_PROBLEMS).to_pylist()
    _show_problems(
        [f"line {row['line']}: {row['key']}: {row['reason']}" for row in shown],
        result["rows"] - result["imported"],
        "--rejected FILE",
    )


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
    result = import_map(
        open_workspace().catalog,
        features,
        family,
        within,
        tag=tag,
        latitude=latitude,
        longitude=longitude,
    )
    if as_json:
        emit_json(asdict(result))
        return
    stdout.print(
        f"{result.near:,} of {result.frames:,} frames with a position lie within {within:g} m of "
        f"one of {result.features:,} features: tags {', '.join(result.columns)}"
    )


def tags_families(as_json: JsonFlag = False) -> None:
    """List the tag families that extractors and imports wrote."""
    found = families.families(open_workspace().catalog)
    if as_json:
        emit_json([asdict(family) for family in found])
        return
    emit_table(
        ("family", "tags", "rows", "names"),
        [(f.name, len(f.columns), f.rows, ", ".join(f.columns)) for f in found],
    )


def tags_drop(
    family: Annotated[str, typer.Argument(help="The tag family.")], as_json: JsonFlag = False
) -> None:
    """Remove a tag family; older snapshots keep it."""
    rows = families.drop(open_workspace().catalog, family)
    if as_json:
        emit_json({"family": family, "rows": rows})
    else:
        stdout.print(f"dropped tag family {family}: {rows:,} rows")


def _show_problems(lines: Sequence[str], total: int, how: str) -> None:
    for line in lines:
        stdout.print(f"  {line}")
    if total > len(lines):
        stdout.print(f"  and {total - len(lines):,} more: {how}")


def _write_csv(rows: pa.Table, out: Path) -> None:
    part = out.with_name(out.name + ".part")
    try:
        csv.write_csv(rows, part)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"{out}: cannot be written: {error.strerror}", str(out)) from error
