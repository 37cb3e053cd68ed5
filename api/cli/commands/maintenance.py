"""framesift compact; framesift catalog log, diff, check, export, backup, restore."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli.commands.catalog import catalog_app
from api.cli.options.common import AtOption, open_workspace
from api.cli.progress_bar import progress_bar
from api.cli.tables.table import emit_table
from api.cli.terminal import JsonFlag, emit_json, size, stderr, stdout
from catalog.errors import InvalidInput, StorageError

if TYPE_CHECKING:
    from api.workspace import Workspace
    from catalog.maintenance.findings import Finding

# What works on the catalog imports the databases: each command imports its own.


def _named(workspace: "Workspace") -> dict[str, int]:
    """The snapshots that datasets name."""
    from catalog.records.datasets import recorded_datasets

    datasets = recorded_datasets(workspace.records)
    return {f"dataset {d.name}@{d.version}": d.snapshot for d in datasets}


@contextmanager
def _to_read(workspace: "Workspace") -> Iterator[tuple["Workspace", dict[str, str]]]:
    """The home, for a block that writes nothing to it; and places that stand for others in it.

    Where SQLite could not open the home's databases, they are read in copies.
    """
    from api.settings import Secret
    from api.workspace import Workspace
    from catalog.storage.readable import readable

    location, records = workspace.catalog_location, workspace.records_place
    changes: dict[str, Any] = {}
    originals: dict[str, str] = {}
    with ExitStack() as stack:
        for name, database in (("catalog_metadata", location.metadata), ("records", records)):
            if not isinstance(database, Path) or not database.exists():
                continue
            wait_s = workspace.settings.lock_wait_s
            is_made = not isinstance(location.metadata, Path) or location.metadata.exists()
            still = location.quiesced(wait_s, "the catalog is being written")
            with still if is_made else nullcontext():
                copy = stack.enter_context(readable(database))
            if copy != database:
                changes[name], originals[str(copy)] = Secret(str(copy)), str(database)
        if not originals:
            yield workspace, {}
            return
        settings = replace(workspace.settings, **changes)
        copied = Workspace(settings, on_making=workspace.on_making)
        try:
            yield copied, originals
        finally:
            copied.close()


def _at(finding: "Finding", originals: dict[str, str]) -> "Finding":
    """A finding on the home's own databases, where it was made in copies."""
    what = finding.what
    for copy, original in originals.items():
        what = what.replace(copy, original)
    return replace(finding, what=what)


def compact(
    keep_days: Annotated[
        float,
        typer.Option(min=0, help="Days of snapshots to keep, beside those of datasets."),
    ] = 7.0,
    now: Annotated[
        bool,
        typer.Option(
            "--now", help="Delete at once what running queries may need: they must be repeated."
        ),
    ] = False,
    merge_only: Annotated[
        bool,
        typer.Option("--merge-only", help="Expire no snapshot, as servers do by themselves."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Merge small files, expire old snapshots, delete files that nothing needs.

    Others may read and write meanwhile. Snapshots that datasets name stay.
    """
    from catalog.maintenance import compaction

    workspace = open_workspace()
    with progress_bar("compact", quiet=as_json) as bar:
        done = compaction.compact(
            workspace.whole_catalog,
            lambda: set(_named(workspace).values()),
            keep=None if merge_only else timedelta(days=keep_days),
            in_use=timedelta(0) if now else compaction.IN_USE,
            progress=lambda step: bar.show(0, None, step),
        )
    if as_json:
        emit_json(asdict(done))
        return
    stdout.print(
        f"{len(done.expired):,} snapshots expired, {done.rewritten + done.merged:,} files written "
        f"again as fewer ones, {done.deleted:,} old files and {done.orphans:,} orphans deleted"
    )


@catalog_app.command("log")
def log(
    limit: Annotated[int, typer.Option(min=1, help="At most this many, newest first.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List the catalog's snapshots: when, by whom, what for, and how much there was."""
    from api.schemas.catalog import SnapshotBody
    from catalog.lake import snapshots

    commits = [SnapshotBody.of(one) for one in snapshots.log(open_workspace().whole_catalog, limit)]
    if as_json:
        emit_json(commits)
        return
    columns = ("snapshot", "time", "author", "reason", "changed", "files", "frames")
    rows = [[one[column] for column in columns] for one in commits]
    emit_table(columns, [[*row[:4], ", ".join(row[4]), *row[5:]] for row in rows])


@catalog_app.command("diff")
def diff(
    before: Annotated[int, typer.Argument(help="Number of a snapshot.")],
    after: Annotated[int, typer.Argument(help="Number of the other snapshot.")],
    rows: Annotated[
        int, typer.Option(min=0, help="Also list up to this many differing tags, by file.")
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Show what differs between two snapshots: files, frames and tags."""
    from api.schemas.catalog import TagChangeBody
    from catalog.maintenance import snapshot_diff

    catalog = open_workspace().whole_catalog
    difference = snapshot_diff.diff(catalog, before, after)
    listed = list(islice(snapshot_diff.changes(catalog, before, after), rows)) if rows else []
    if as_json:
        changes = [TagChangeBody.of(one).model_dump() for one in listed]
        document = asdict(difference) | {"changes": changes}
        emit_json(document)
        return
    emit_table(
        ("", "added", "removed", "changed"),
        [
            ("files", difference.files_added, difference.files_removed, difference.files_changed),
            (
                "frames",
                difference.frames_added,
                difference.frames_removed,
                difference.frames_changed,
            ),
            (
                "tags",
                len(difference.tags_added),
                len(difference.tags_removed),
                len(difference.tags),
            ),
        ],
    )
    for word, tags in (("new", difference.tags_added), ("gone", difference.tags_removed)):
        if tags:
            stdout.print(f"{word} tags: {', '.join(tags)}")
    if difference.tags:
        emit_table(
            ("tag", "set", "cleared", "changed"),
            [(tag, one.set, one.cleared, one.changed) for tag, one in difference.tags.items()],
        )
    if listed:
        emit_table(
            ("file", "tag", "before", "after"),
            [(one.fkey, one.tag, one.before, one.after) for one in listed],
        )


@catalog_app.command("check")
def check(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair what can be repaired; lost data is not invented."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Verify counts, views, snapshots, files, datasets and models; exit code 1 if one is wrong.

    With --repair it is 0 if everything wrong was repaired.
    """
    if repair:
        findings = _checked(open_workspace(), repair)
    else:
        with _to_read(open_workspace()) as (workspace, originals):
            findings = [_at(finding, originals) for finding in _checked(workspace, repair)]
    if as_json:
        emit_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            end = "repaired" if finding.repaired else finding.remedy
            stdout.print(f"{finding.kind}: {finding.what}: {end}")
        if not findings:
            stdout.print("nothing is wrong")
    if any(not finding.repaired for finding in findings):
        raise typer.Exit(1)


def _checked(workspace: "Workspace", repair: bool) -> list["Finding"]:
    """Faults of the records and the catalog, also where one cannot be opened."""
    from catalog.errors import CatalogDamaged
    from catalog.lake.metadata.own_tables import is_made
    from catalog.maintenance.check import check as check_catalog
    from catalog.maintenance.damage import damage, damage_of_records
    from catalog.records.sources import recorded_sources
    from pipeline.datasets.check_artifacts import check_artifacts

    findings: list[Finding] = []
    if is_made(workspace.catalog_location):  # else there is nothing, and nothing wrong
        findings += damage_of_records(workspace.records_place)
    named, sources = dict[str, int](), None
    if not findings:
        named = _named(workspace)
        sources = {(one.cluster, one.datasource) for one in recorded_sources(workspace.records)}
        findings += check_artifacts(workspace.records, repair=repair)
    try:
        catalog = workspace.whole_catalog
    except CatalogDamaged:
        damaged = damage(workspace.catalog_location, workspace.settings.lock_wait_s).findings
        if not damaged:
            raise
        return [*findings, *damaged]
    return [*findings, *check_catalog(catalog, named, sources=sources, repair=repair)]


@catalog_app.command("export")
def export(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    format_: Annotated[
        Literal["parquet", "iceberg"],
        typer.Option("--format", help="Plain Parquet files, or an Apache Iceberg table."),
    ] = "parquet",
    at: AtOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the catalog as one wide table: a row per file, metaocean's columns and every tag."""
    from catalog.maintenance.export import export_iceberg, export_parquet

    write = export_iceberg if format_ == "iceberg" else export_parquet
    done = write(open_workspace().whole_catalog, folder.absolute(), at)
    if as_json:
        emit_json(asdict(done))
    else:
        stdout.print(
            f"exported snapshot {done.snapshot}: {done.rows:,} rows, {done.columns} columns; "
            f"open {done.opened_by}"
        )


@catalog_app.command("backup")
def backup(
    target: Annotated[Path, typer.Argument(help="Folder to make, or a file NAME.tar.")],
    as_json: JsonFlag = False,
) -> None:
    """Write catalog, records, datasets and models into a backup while others read and write."""
    from catalog.maintenance.backup import back_up
    from catalog.maintenance.last_backup import record_backup

    opened = open_workspace()
    with (
        _to_read(opened) as (workspace, _),
        progress_bar(f"backup {target.name}", quiet=as_json) as bar,
    ):
        done = back_up(
            workspace.whole_catalog,
            workspace.records,
            target.absolute(),
            lambda files, total: bar.show(files, total, f"{files:,} of {total:,} files"),
        )
    try:
        record_backup(opened.home, done, target.absolute())
    except StorageError as error:  # a home that this user may only read
        stderr.print(f"the home does not record this backup, for alerts of its age: {error}")
    _emit_backup(f"backup {target}", asdict(done), as_json)


@catalog_app.command("restore")
def restore(
    source: Annotated[
        Path | None, typer.Argument(help="The folder or file of framesift catalog backup.")
    ] = None,
    to_snapshot: Annotated[
        int | None,
        typer.Option(
            min=1, help="Go back to this snapshot of the catalog that is there, as a new one."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Put a backup's catalog, records, datasets and models into this home, which must have none.

    With --to-snapshot, go back to an older snapshot of the catalog that is there, where files of
    the newest are lost: framesift catalog check says which is whole.
    """
    workspace = open_workspace()
    if (source is None) == (to_snapshot is None):
        raise InvalidInput("give a backup, or --to-snapshot with the number of a snapshot")
    if to_snapshot is not None:
        _go_back(workspace, to_snapshot, as_json)
        return
    assert source is not None
    from catalog.maintenance.backup import restore as restore_backup

    settings = workspace.settings
    if settings.catalog_metadata or settings.catalog_data or settings.records:
        raise InvalidInput(
            "FRAMESIFT_CATALOG_METADATA, FRAMESIFT_CATALOG_DATA or FRAMESIFT_RECORDS is set: a "
            "backup is restored into a home of its own; unset them, and copy it from there with "
            "framesift catalog copy"
        )
    if not source.exists():
        raise InvalidInput(f"{source}: no such file or folder; expected a backup")
    done = restore_backup(source.absolute(), workspace.home)
    _emit_backup(f"restored {source} into {workspace.home}", asdict(done), as_json)


def _go_back(workspace: "Workspace", number: int, as_json: bool) -> None:
    from catalog.maintenance.go_back import go_back

    snapshot = go_back(workspace.catalog_location, number, workspace.settings.lock_wait_s)
    if as_json:
        emit_json({"snapshot": snapshot, "restored": number})
    else:
        stdout.print(f"snapshot {snapshot} is as snapshot {number} was")


def _emit_backup(what: str, done: dict[str, Any], as_json: bool) -> None:
    done["made"] = f"{done['made'].isoformat()}Z"
    if as_json:
        emit_json(done)
    else:
        stdout.print(
            f"{what}: snapshot {done['snapshot']}, made {done['made']}, {done['datasets']:,} "
            f"datasets, {done['models']:,} models, {done['files']:,} files, {size(done['bytes'])}"
        )
        if done["missing"]:
            missing = ", ".join(done["missing"])
            stdout.print(f"without a manifest, see framesift catalog check: {missing}")
