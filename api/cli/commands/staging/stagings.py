"""framesift stagings."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, duration, emit_json, size, stdout

stagings_app = typer.Typer(no_args_is_help=True, help="Stagings, done and running.")


@stagings_app.command("list")
def list_(
    dataset: Annotated[
        str | None, typer.Argument(help="Only of this NAME, or NAME@VERSION.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the stagings that are done or failed, newest first."""
    listed: list[Record] = list(target().stagings.list(dataset=dataset))
    if as_json:
        emit_json(listed)
        return
    columns = ("staging", "dataset", "state", "created", "files", "fetched", "size", "cache")
    rows = [
        (
            *(staging[name] for name in columns[:5]),
            staging["files_copied"],
            size(staging["bytes"]),
            staging["cache"],
            staging["error"],
        )
        for staging in listed
    ]
    emit_table((*columns, "error"), rows)


@stagings_app.command("running")
def running(as_json: JsonFlag = False) -> None:
    """List the stagings that run or wait to, with what they have done."""
    listed: list[Record] = list(target().stagings.running())
    if as_json:
        emit_json(listed)
        return
    columns = ("name", "dataset", "state", "user", "host", "queued", "done", "failed", "bytes")
    emit_table((*columns, "rate", "left"), [_row(staging, columns[:5]) for staging in listed])


@stagings_app.command("cancel")
def cancel(
    name: Annotated[str, typer.Argument(help="As framesift stagings running names it.")],
    as_json: JsonFlag = False,
) -> None:
    """Ask a staging to end; what has come stays in the cache."""
    cancelled = target().stagings.cancel(name)
    if as_json:
        emit_json(cancelled)
    else:
        stdout.print(f"staging {name} of {cancelled['dataset']} is asked to end")


def _row(staging: Record, columns: tuple[str, ...]) -> list[Any]:
    values = [staging[name] for name in columns]
    progress: Mapping[str, Any] | None = staging["progress"]
    if progress is None:
        return [*values, "", "", "", "", "", ""]
    eta_s = progress["eta_s"]
    return [
        *values,
        *(progress[name] for name in ("queued", "done", "failed")),
        size(progress["fetched_bytes"]),
        f"{progress['mb_per_s']:.1f} MB/s",
        "" if eta_s is None else duration(eta_s),
    ]
