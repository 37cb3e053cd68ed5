"""framesift source, info."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api import bodies
from api.commands.common import open_workspace
from api.terminal import JsonFlag, emit_json, emit_table, stdout
from catalog.errors import InvalidInput
from catalog.frames import info as catalog_info
from catalog.records import PLATFORMS
from catalog.tables import Source
from ingest.source_files import open_source
from ingest.source_options import SourceOptions
from ingest.sources import remove_source

source_app = typer.Typer(no_args_is_help=True, help="Places that hold files.")


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.add_typer(source_app, name="source")
    app.command("info")(info)


@source_app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    uri: Annotated[
        str, typer.Argument(help="Folder or .tar archive: a path, file:/// or s3:// URI.")
    ],
    platform: Annotated[str, typer.Option(help=f"One of: {', '.join(PLATFORMS)}.")] = "local",
    datasource: Annotated[
        str | None, typer.Option(help="Bucket or export name; the source's name by default.")
    ] = None,
    cluster: Annotated[str, typer.Option(help="Cluster or host that serves it.")] = "local",
    site: Annotated[str, typer.Option(help="Free text.")] = "",
    endpoint_url: Annotated[
        str, typer.Option(help="Server that speaks S3, such as IBM COS; AWS by default.")
    ] = "",
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Ask S3 unsigned.")] = False,
    profile: Annotated[str, typer.Option(help="Profile of ~/.aws/config with the keys.")] = "",
    region: Annotated[str, typer.Option(help="Region of the bucket.")] = "",
    ca_bundle: Annotated[str, typer.Option(help="PEM file of authorities to trust.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Add a source. Its rows read as objects for IBM COS and S3, as files otherwise."""
    if "://" not in uri:
        uri = str(Path(uri).expanduser().absolute())
    if not name or "/" in name:
        raise InvalidInput(f"source name '{name}': expected some text without slashes")
    options = SourceOptions(endpoint_url, anonymous, profile, region, ca_bundle)
    workspace = open_workspace()
    open_source(uri, options, workspace.indexes)
    source = workspace.records.add_source(
        Source(
            name=name,
            uri=uri,
            platform=platform,
            cluster=cluster,
            datasource=datasource or name,
            site=site,
            options=options.to_json(),
        )
    )
    if as_json:
        emit_json(bodies.of_source(source))
    else:
        stdout.print(f"added source {name}: {platform}, datasource {source.datasource}, {uri}")


@source_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the sources."""
    sources = [bodies.of_source(source) for source in open_workspace().records.sources()]
    if as_json:
        emit_json(sources)
    else:
        columns = ("name", "platform", "cluster", "datasource", "uri")
        emit_table(columns, [[source[c] for c in columns] for source in sources])


@source_app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="The source.")], as_json: JsonFlag = False
) -> None:
    """Remove a source and its files' rows from the catalog; the files stay where they are."""
    workspace = open_workspace()
    removed = remove_source(workspace.catalog, workspace.records, name)
    if as_json:
        emit_json({"name": name, "files_removed": removed})
    else:
        stdout.print(f"removed source {name} and its {removed:,} rows")


def info(as_json: JsonFlag = False) -> None:
    """Show where things are and how much there is."""
    workspace = open_workspace()
    found = catalog_info(workspace.catalog)
    shown: dict[str, Any] = {
        "home": str(workspace.home),
        "cache": str(workspace.cache),
        "snapshot": found.snapshot,
        "files": found.files,
        "frames": found.frames,
        "tags": found.tags,
        "sources": len(workspace.records.sources()),
        "datasets": len(workspace.records.datasets()),
        "jobs": len(workspace.records.jobs()),
    }
    if as_json:
        emit_json(shown)
    else:
        emit_table(("", ""), list(shown.items()))
