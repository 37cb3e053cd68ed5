"""A source whose files lie elsewhere by now: re-pointed, once they are found to be the same."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import duckdb

from catalog.errors import InvalidInput, StorageError
from catalog.frames.frames import SourceNames, count_files, known_files
from catalog.lake.schema import FILES
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.sources import recorded_source, source_to_change
from catalog.records.store import RecordStore
from catalog.store import CatalogStore
from catalog.values import OBJECT_PLATFORMS, make_fkey
from ingest.scan.change_source import OptionChange
from ingest.scan.listing_diff import ScannedFile, compare
from ingest.scan.scan_lock import scan_lock
from ingest.sources.schemes import open_source
from ingest.sources.source_options import SourceOptions

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Moved:
    """A source at its new place, and what lies there of what is catalogued."""

    name: str
    uri: str
    same: int
    changed: int
    """Files of another size, ETag or time of last change."""
    missing: int
    """Files that are catalogued and not there."""
    new: int
    """Files that are there and not catalogued."""


def move_source(
    store: CatalogStore,
    records: RecordStore,
    name: str,
    uri: str,
    options: SourceOptions,
    *,
    index_folder: Path | None = None,
    differing: bool = False,
    change: OptionChange = OptionChange(),  # noqa: B008 (it never changes)
    expected: ExpectedVersion | None = None,
) -> Moved:
    """Have a source lie at a URI; its files keep their names, tags and datasets.

    Its files are compared as the source was: what its patterns left out is not catalogued.

    Args:
        uri: Where it lies now, as open_source takes it.
        differing: Do so although files are missing or changed there.

    Raises:
        InvalidInput: What lies there cannot be opened, or is not what is catalogued.
    """
    source = to_change("source", name, expected, lambda: recorded_source(records, name))
    names = SourceNames(source.platform, source.cluster, source.datasource, uri, source.site)
    with scan_lock(store, source):
        with records.reading() as session:  # before its rows change; what changes it holds the lock
            source_to_change(session, source, expected)
        try:
            files = open_source(uri, options, index_folder)
            listed = files.list("", lambda _key, _reason: None)
            with store.reading_files() as cursor:
                compared = compare(listed, known_files(cursor, names))
                differing_files = [file for file in compared if _differs(file)]
                catalogued = count_files(cursor, names)
        except StorageError as error:
            raise InvalidInput(str(error)) from error
        changed, missing, new = (
            [file.key for file in differing_files if file.change == change]
            for change in ("changed", "removed", "added")
        )
        if not differing:
            _refuse(name, uri, catalogued, changed, missing)
        if source.platform not in OBJECT_PLATFORMS:
            with store.writing(f"source {name} moved") as connection:
                _show_at(connection, replace(names, root=files.root))
        with records.session() as session:
            record = source_to_change(session, source, expected)
            until_now = SourceOptions.from_json(record.options)
            options_of_change = {field.name for field in fields(change)}.intersection(
                SourceOptions.__slots__
            )
            unchanged = {option: getattr(until_now, option) for option in options_of_change}
            record.uri = uri
            change.keep(record, replace(options, **unchanged))
    same = catalogued - len(changed) - len(missing)
    return Moved(name, uri, same, len(changed), len(missing), len(new))


def _differs(file: ScannedFile) -> bool:
    return file.change != "unchanged"


def _refuse(
    name: str, uri: str, catalogued: int, changed: Sequence[str], missing: Sequence[str]
) -> None:
    parts = [
        f"{len(keys):,} {what} ({', '.join(keys[:_EXAMPLES])}{', ...' * (len(keys) > _EXAMPLES)})"
        for keys, what in (
            (missing, "are missing"),
            (changed, "have another size or time of last change"),
        )
        if keys
    ]
    if parts:
        raise InvalidInput(
            f"source {name}: of {catalogued:,} catalogued files {' and '.join(parts)} at {uri}. "
            "Copy it with its times (rsync -a, cp -a), or re-point it all the same with "
            "--differing: the next ingest then takes what is there, and datasets of files that "
            "changed must be made again"
        )


def _show_at(connection: duckdb.DuckDBPyConnection, names: SourceNames) -> None:
    """Let the rows of a file system's files show the folders that they lie in now."""
    prefix = make_fkey(names.cluster, names.datasource, "")
    folder = "? || left(substr(fkey, ?), length(fkey) - ? - length(filename))"
    root, length = f"{names.root.rstrip('/')}/", len(prefix)
    connection.execute(
        f"UPDATE {FILES} SET path = {folder} WHERE cluster = ? AND datasource = ?",
        [root, length + 1, length, names.cluster, names.datasource],
    )
