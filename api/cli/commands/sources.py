"""framesift source, info."""

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, document, emit_json, emit_text, stdout
from catalog.errors import InvalidInput
from catalog.values import PLATFORMS
from ingest.sources.mount import MOUNT
from ingest.sources.schemes import PLACES

if TYPE_CHECKING:  # what lists sources does without the models of requests
    from api.schemas.sources import NewSource

source_app = typer.Typer(no_args_is_help=True, help="Places that hold files.")


@source_app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Its name.")],
    uri: Annotated[str, typer.Argument(help=PLACES)],
    platform: Annotated[str, typer.Option(help=f"One of: {', '.join(PLATFORMS)}.")] = "local",
    datasource: Annotated[
        str | None, typer.Option(help="Bucket or export name; the source's name by default.")
    ] = None,
    cluster: Annotated[str, typer.Option(help="Cluster or host that serves it.")] = "local",
    site: Annotated[str, typer.Option(help="Free text.")] = "",
    endpoint_url: Annotated[
        str, typer.Option(help="Server that speaks S3, such as IBM COS; AWS by default.")
    ] = "",
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Send unsigned requests to S3.")
    ] = False,
    profile: Annotated[str, typer.Option(help="Profile of ~/.aws/config with the keys.")] = "",
    access_key: Annotated[
        str,
        typer.Option(
            help="Instead of a profile; prompts for the secret key, or reads it from stdin."
        ),
    ] = "",
    region: Annotated[str, typer.Option(help="Region of the bucket.")] = "",
    ca_bundle: Annotated[str, typer.Option(help="PEM file of authorities to trust.")] = "",
    part_of: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Data set that it is a part of, as the source of its name: extractors look for a "
            "frame's files in all of them. Its own name by default.",
        ),
    ] = "",
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out files and folders of this name (lost+found, '*.bak'), or of this path "
            "below the root; repeatable.",
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="How its files are named and what its labels' pixels mean: a preset's name "
            "(framesift layout list), or a layout file. By default its names tell.",
        ),
    ] = "",
    mount: Annotated[
        str,
        typer.Option(
            metavar=MOUNT,
            help="Its root on a mounted file system, for jobs without staging and for AFM.",
        ),
    ] = "",
    max_mb_per_s: Annotated[
        float, typer.Option(help="Megabytes a second that a staging fetches at most; 0: any.")
    ] = 0,
    max_requests_per_s: Annotated[
        float, typer.Option(help="Requests a second that a staging sends at most; 0: any.")
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Add a source. Its rows have the shape of objects for IBM COS and S3, of files otherwise."""
    body = _checked(
        name=name,
        uri=uri,
        platform=platform,
        datasource=datasource,
        cluster=cluster,
        site=site,
        endpoint_url=endpoint_url,
        anonymous=anonymous,
        profile=profile,
        access_key=access_key,
        secret_key=_secret_key() if access_key else "",
        region=region,
        ca_bundle=ca_bundle,
        exclude=exclude or [],
        part_of=part_of,
        layout=_layout(layout),
        mount=mount,
        max_mb_per_s=max_mb_per_s,
        max_requests_per_s=max_requests_per_s,
    )
    source = target(makes=True).sources.add(**_sent_fields(body))
    if as_json:
        emit_json(source)
    else:
        stdout.print(
            f"added source {name}: {platform}, datasource {source['datasource']}, {source['uri']}"
        )
        for note in source["notes"]:
            emit_text(note, end="\n")


def _layout(text: str) -> str | dict[str, Any]:
    """A preset's name as it is; a layout file as its document."""
    from ingest.layouts.read_layout import preset_names, read_layout

    return text if not text or text in preset_names() else dict(read_layout(text).document)


def _secret_key() -> str:
    """Never an argument: those are seen by every process of the machine."""
    if sys.stdin.isatty():
        return str(typer.prompt("Secret key", hide_input=True, err=True))
    return sys.stdin.readline().strip()


@source_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the sources."""
    listed: list[Record] = list(target().sources.list())
    if as_json:
        emit_json(listed)
    else:
        columns = ("name", "platform", "cluster", "datasource", "uri")
        emit_table(columns, [[source[c] for c in columns] for source in listed])


@source_app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="The source.")], as_json: JsonFlag = False
) -> None:
    """Show a source, with its layout: patterns, encoding, classes."""
    source = document(target().sources.get(name))
    if as_json:
        emit_json(source)
        return
    layout = source.pop("layout_document")
    patterns = {key: value for key, value in layout.items() if isinstance(value, str)}
    rows = [*source.items(), *((key, value) for key, value in patterns.items() if key != "name")]
    if "classes" in layout:
        rows.append(("classes", ", ".join(dict.fromkeys(row["name"] for row in layout["classes"]))))
    emit_table(("", ""), rows)


@source_app.command("set")
def set_(
    name: Annotated[str, typer.Argument(help="The source.")],
    root: Annotated[
        str | None,
        typer.Argument(help="Where its files lie now, if they were moved: a path or URI."),
    ] = None,
    differing: Annotated[
        bool, typer.Option("--differing", help="Even if files are missing or changed there.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out these from the next ingest on, in place of the present list; "
            "repeatable; --exclude '' leaves out nothing.",
        ),
    ] = None,
    part_of: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Data set that it is a part of; '' for its own."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", help="A preset's name, or a layout file; '' where its names tell."
        ),
    ] = None,
    mount: Annotated[
        str | None,
        typer.Option(metavar=MOUNT, help="Its root on a mounted file system; '' for none."),
    ] = None,
    max_mb_per_s: Annotated[
        float | None,
        typer.Option(help="Megabytes a second that a staging fetches at most; 0: any."),
    ] = None,
    max_requests_per_s: Annotated[
        float | None,
        typer.Option(help="Requests a second that a staging sends at most; 0: any."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change a source: its root, what it leaves out, its data set, layout, mount and limits.

    Moved files are compared first, and datasets follow. Options that are not given change nothing.
    """
    from api.schemas.sources import SourceChange
    from query.question.wrong_value import checked

    left_out = [] if exclude == [""] else exclude
    change = checked(
        SourceChange,
        uri=root,
        differing=differing,
        exclude=left_out,
        part_of=part_of,
        layout=None if layout is None else _layout(layout),
        mount=mount,
        max_mb_per_s=max_mb_per_s,
        max_requests_per_s=max_requests_per_s,
    )
    changed = target().sources.change(name, **dict(change))
    if as_json:
        emit_json(changed)
        return
    if root is not None:
        stdout.print(
            f"source {name} lies at {changed['uri']}: {changed['same']:,} files as catalogued, "
            f"{changed['changed']:,} changed, {changed['missing']:,} missing, "
            f"{changed['new']:,} new"
        )
    if exclude is not None:
        patterns = ", ".join(changed["exclude"]) or "nothing"
        stdout.print(f"source {name} leaves out {patterns}, from the next ingest on")
    if part_of is not None:
        stdout.print(f"source {name} is a part of data set {changed['part_of']}")
    if layout is not None:
        by = f"by layout {changed['layout']}" if changed["layout"] else "as its names tell"
        stdout.print(f"source {name} is read {by}, from the next ingest on")
    if mount is not None:
        stdout.print(f"source {name} is mounted at {changed['mount'] or 'no folder'}")
    if max_mb_per_s is not None or max_requests_per_s is not None:
        stdout.print(
            f"from source {name} a staging takes {_at_most(changed['max_mb_per_s'], 'MB')} and "
            f"{_at_most(changed['max_requests_per_s'], 'requests')} a second"
        )


def _at_most(limit: float, unit: str) -> str:
    return f"at most {limit:,g} {unit}" if limit else f"any number of {unit}"


@source_app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="The source.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove a source and its files' rows from the catalog; the files stay where they are.

    Lists what depends on it and asks for confirmation. Tags that people
    gave are kept: they return when the files are catalogued under the same cluster and datasource.
    """
    sources = target().sources
    if not yes:
        _ask_whether_to_remove(sources.contents(name))
    removed = sources.remove(name)
    if as_json:
        emit_json(removed)
    else:
        stdout.print(f"removed source {name} and its {removed['files_removed']:,} rows")


def _ask_whether_to_remove(contents: Record) -> None:
    """Say what hangs on a source, where something does, and let it be decided.

    Raises:
        InvalidInput: Nobody is there to decide.
    """
    if not (contents["files"] or contents["datasets"]):
        return
    parts = [f"{contents['files']:,} files ({contents['frames']:,} labelled frames)"]
    if contents["tags"]:
        tags = ", ".join(f"{family} of {n:,} files" for family, n in contents["tags"].items())
        parts.append(f"tags that people gave ({tags}), which are kept until these files return")
    if contents["datasets"]:
        needing = ", ".join(contents["datasets"])
        parts.append(f"datasets with frames of it: {needing}")
    what = f"source {contents['name']} has {'; '.join(parts)}"
    if not sys.stdin.isatty():
        raise InvalidInput(f"{what}; to remove it without being asked, add --yes")
    emit_text(what, err=True, end="\n")
    typer.confirm("Remove it?", abort=True, err=True)


def info(as_json: JsonFlag = False) -> None:
    """Show where things are and how much there is."""
    info = document(target().info())
    if as_json:
        emit_json(info)
    else:
        emit_table(("", ""), list(info.items()))


def _checked(**fields: Any) -> "NewSource":
    from api.schemas.sources import SOURCE_NAME, NewSource
    from query.question.wrong_value import checked

    if not re.fullmatch(SOURCE_NAME, fields["name"]):
        raise InvalidInput(
            f"source name '{fields['name']}': expected letters, digits, '.', '_' and '-', and "
            "a letter, a digit or '_' first"
        )
    return checked(NewSource, **fields)


def _sent_fields(source: "NewSource") -> dict[str, Any]:
    """The fields that differ from the defaults; the secret is not masked."""
    fields = source.model_dump(exclude_defaults=True)
    if "secret_key" in fields:
        fields["secret_key"] = source.secret_key.get_secret_value()
    return fields
