"""framesift cache."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import destination
from api.cli.options.byte_sizes import parse_bytes, parse_count
from api.cli.options.staging_options import CacheOption, WorkersOption
from api.cli.tables.bars import bar
from api.cli.tables.table import emit_table
from api.cli.target import home_session, target
from api.cli.terminal import JsonFlag, emit_json, size, stdout
from api.schemas.home_orders import Staging
from catalog.errors import InvalidInput
from catalog.text.visible_text import visible
from pipeline.afm.target import TARGET

if TYPE_CHECKING:
    from api.cli.target import Cache, Record

cache_app = typer.Typer(no_args_is_help=True, help="What is staged near the jobs.")

DatasetArgument = Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")]


@cache_app.command("verify")
def verify_(
    dataset: DatasetArgument,
    cache: CacheOption = None,
    workers: WorkersOption = Staging.workers,
    as_json: JsonFlag = False,
) -> None:
    """Read a dataset's files in the cache again; fetch what is damaged or missing."""
    from api.cli.commands.staging.stage import run_staging  # a cache's status does without

    order = Staging(dataset=dataset, workers=workers, verify=True)
    run_staging(order, cache, as_json=as_json)


@cache_app.command("status")
def status(cache: CacheOption = None, as_json: JsonFlag = False) -> None:
    """Show what fills the cache, by dataset and by source, and who uses it."""
    filled = _cache(cache).status()
    if as_json:
        emit_json(filled)
        return
    limits, largest = filled["limits"], max(1, filled["bytes"])
    hard = limits["hard_bytes"]
    of = "no limit" if hard is None else f"limited to {size(hard)}"
    stdout.print(
        f"{limits['cache']}: {size(filled['bytes'])} in {filled['files']:,} files, {of}; "
        f"{size(filled['free_bytes'])} free on its file system"
    )
    rows = [
        (one["dataset"], bar(one["bytes"], largest), size(one["bytes"]), one["files"],
         size(one["alone_bytes"]), size(one["prepared_bytes"]), one["used"], _kept_by(one))
        for one in filled["datasets"]
    ]  # fmt: skip
    columns = ("dataset", "", "size", "files", "alone", "prepared", "last used", "kept by")
    emit_table(columns, rows, "By dataset; files of several count for each.")
    unnamed = (("no dataset", filled["unnamed"]), ("decoded frames", filled["prepared"]))
    parts = [(one["source"], one) for one in filled["sources"]]
    emit_table(
        ("source", "", "size", "files"),
        [
            (name, bar(one["bytes"], largest), size(one["bytes"]), one["files"])
            for name, one in (*parts, *unnamed)
        ],
        "By source.",
    )
    for lease in filled["leases"]:
        stdout.print(visible(_used_by(lease)))


def _kept_by(dataset: "Record") -> str:
    """Names the pin and the running jobs that keep a dataset in the cache."""
    jobs = f"{dataset['leases']} running" if dataset["leases"] else ""
    return ", ".join(holder for holder in ("pin" if dataset["pinned"] else "", jobs) if holder)


def _used_by(lease: "Record") -> str:
    what = f"job {lease['job']}" if lease["job"] else "a staging"
    user = f" of {lease['user']}" if lease["user"] else ""
    coming = lease["reserved_bytes"]
    more = f", with {size(coming)} to come" if coming else ""
    process = f"process {lease['pid']} on {lease['host']}"
    return f"{lease['dataset']} is used by {what}{user}, {process}{more}"


@cache_app.command("limit")
def limit(
    sizes: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    soft: Annotated[
        str | None, typer.Option(help="Size that a staging evicts down to at its end; or none.")
    ] = None,
    hard: Annotated[
        str | None, typer.Option(help="Size that is never passed, such as 500GB; or none.")
    ] = None,
    soft_files: Annotated[
        str | None, typer.Option(help="Files that a staging evicts down to; or none.")
    ] = None,
    hard_files: Annotated[
        str | None, typer.Option(help="Files that there are never more of; or none.")
    ] = None,
    free: Annotated[
        str | None, typer.Option(help="Size that must stay free on the file system.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Size that one user's datasets may take; or none.")
    ] = None,
    cache: CacheOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Set limits for all who share the cache; show them."""
    if sizes:
        raise InvalidInput(
            f"cache limit {sizes[0]}: which limit? Give it by its option, such as --hard "
            f"{sizes[0]} for a size that is never passed; framesift cache limit --help lists them"
        )
    texts = {
        "soft_bytes": soft,
        "hard_bytes": hard,
        "soft_files": soft_files,
        "hard_files": hard_files,
        "free_bytes": free,
        "user_bytes": user,
    }
    changes = {name: _limit(text, name) for name, text in texts.items() if text is not None}
    chosen_cache = _cache(cache)
    limits = chosen_cache.limit(**changes) if changes else chosen_cache.limits()
    if as_json:
        emit_json(limits)
        return
    for name in texts:
        value = limits[name]
        formatter = size if name.endswith("bytes") else "{:,}".format
        stdout.print(f"{name.replace('_', ' ')}: {'none' if value is None else formatter(value)}")


def _limit(text: str, name: str) -> int | None:
    if text == "none" and name != "free_bytes":
        return None
    return parse_bytes(text) if name.endswith("bytes") else parse_count(text)


@cache_app.command("pin")
def pin(dataset: DatasetArgument, cache: CacheOption = None, as_json: JsonFlag = False) -> None:
    """Have a dataset stay in the cache until it is unpinned."""
    pinned = _cache(cache).pin(dataset)
    if as_json:
        emit_json(pinned)
    else:
        stdout.print(f"pinned {pinned['dataset']}")


@cache_app.command("unpin")
def unpin(dataset: DatasetArgument, cache: CacheOption = None, as_json: JsonFlag = False) -> None:
    """Let a dataset be evicted again."""
    unpinned = _cache(cache).unpin(dataset)
    if as_json:
        emit_json(unpinned)
    else:
        stdout.print(f"unpinned {unpinned['dataset']}")


@cache_app.command("contents")
def contents(
    dataset: DatasetArgument,
    cache: CacheOption = None,
    filesets: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar=TARGET,
            help="Look at its files in this AFM fileset, in place of the cache; repeatable.",
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="List the files that are not cached instead.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the files of a dataset that are cached."""
    if filesets and cache is not None:
        raise InvalidInput(f"--cache {cache} and --from {filesets[0]}: give one of them")
    files: list[Record] = list(
        _cache(cache).contents(dataset, filesets=filesets or (), missing=missing)
    )
    if as_json:
        emit_json({"files": files})
        return
    rows = [(one["source"], one["file"], size(one["bytes"])) for one in files]
    emit_table(("source", "file", "size"), rows)
    are = "are not cached" if missing else "are cached"
    stdout.print(f"{len(files):,} files, {size(sum(one['bytes'] for one in files))} {are}")


@cache_app.command("evict")
def evict(
    dataset: DatasetArgument,
    cache: CacheOption = None,
    filesets: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar=TARGET,
            help="Have AFM release its files in this fileset, in place of the cache; repeatable.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Remove a dataset from the cache; files that other staged datasets name stay."""
    if filesets and cache is not None:
        raise InvalidInput(f"--cache {cache} and --from {filesets[0]}: give one of them")
    evicted = _cache(cache).evict(dataset, **({"filesets": filesets} if filesets else {}))
    if as_json:
        emit_json(evicted)
    else:
        stdout.print(
            f"evicted {evicted['dataset']}: {evicted['files']:,} files, {size(evicted['bytes'])}"
        )


def _cache(folder: Path | None) -> "Cache":
    """The cache in a folder; that of the home or server when None."""
    if folder is None:
        return target().cache
    if destination.server() is not None:
        raise InvalidInput(
            f"--cache {folder}: a server has its own (FRAMESIFT_CACHE there); leave it out"
        )
    return home_session().cache.at(folder)
