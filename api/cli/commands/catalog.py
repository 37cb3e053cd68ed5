"""framesift catalog: maintenance of the catalog as a whole."""

from dataclasses import asdict
from typing import Annotated

import typer

from api.cli.options.common import open_workspace
from api.cli.progress_bar import progress_bar
from api.cli.terminal import JsonFlag, emit_json, stdout
from catalog.errors import InvalidInput

catalog_app = typer.Typer(no_args_is_help=True, help="Maintain the catalog as a whole.")


@catalog_app.callback()
def _catalog() -> None:
    pass


@catalog_app.command("copy")
def copy(
    to_metadata: Annotated[
        str,
        typer.Argument(
            help="postgresql://USER@HOST/DATABASE, empty. Other users of this machine see the "
            "command line: leave the password to ~/.pgpass."
        ),
    ],
    to_data: Annotated[str, typer.Argument(help="s3://bucket/prefix or folder, empty.")],
    to_records: Annotated[
        str | None,
        typer.Option(
            "--records", metavar="URL", help="Copy sources, scans, datasets and jobs there, too."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Copy the catalog with its whole history to a team's catalog, and compare both.

    Snapshots keep their numbers, so that datasets keep theirs. Writers wait meanwhile, readers do
    not. With --records, manifests of datasets and models are copied beside the data; other files
    of jobs and indexes stay in FRAMESIFT_HOME. Nothing is left of a copy that fails.
    """
    from api.settings import Secret
    from api.workspace import data_at, database_at
    from catalog.maintenance.copying import copy_catalog
    from catalog.records.store import RecordStore
    from catalog.storage.location import CatalogLocation

    workspace = open_workspace()
    metadata = database_at(Secret(to_metadata))
    data = data_at(to_data, workspace.s3_access)
    if metadata is None or data is None:
        raise InvalidInput("TO_METADATA and TO_DATA: expected postgresql://... and s3://...")
    target = CatalogLocation(metadata, data)
    location = database_at(Secret(to_records)) if to_records else None
    records = (workspace.records, RecordStore(location)) if location is not None else None
    with progress_bar("copying", quiet=as_json) as bar:
        copied = copy_catalog(
            workspace.whole_catalog,
            target,
            records,
            lambda done, files: bar.show(done, files, f"{done:,} of {files:,} files"),
        )
    if as_json:
        emit_json(asdict(copied))
        return
    stdout.print(
        f"copied {copied.snapshots:,} snapshots, the newest {copied.snapshot}, to {metadata}: "
        f"{copied.files:,} files, {copied.bytes:,} bytes in {data}; "
        f"{sum(copied.rows.values()):,} rows compared and equal"
    )
    if records is not None:
        stdout.print(
            f"copied {sum(copied.records.values()):,} records to {location}, and "
            f"{copied.datasets:,} manifests of datasets and {copied.models:,} models"
        )
    if copied.missing:
        stdout.print(
            f"without a manifest, see framesift catalog check: {', '.join(copied.missing)}"
        )
    stdout.print("now set FRAMESIFT_CATALOG_METADATA, FRAMESIFT_CATALOG_DATA and FRAMESIFT_RECORDS")
