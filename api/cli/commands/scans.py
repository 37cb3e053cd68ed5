"""framesift scans."""

from typing import Annotated, Literal

import typer

from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, duration, emit_json

scans_app = typer.Typer(no_args_is_help=True, help="Scans of sources, done and running.")


@scans_app.command("list")
def list_(
    source: Annotated[str | None, typer.Argument(help="Only of this source.")] = None,
    state: Annotated[
        Literal["running", "done", "failed"] | None, typer.Option(help="Only in this state.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the scans, newest first: what each found and how long it took."""
    listed: list[Record] = list(target().scans.list(source=source, state=state))
    if as_json:
        emit_json(listed)
        return
    facts = ("scan", "source", "kind", "state", "started")
    counts = ("files", "added", "changed", "removed", "frames", "bad_files")
    rows = [
        (
            *(scan[name] for name in facts),
            duration(scan["seconds"]),
            *(scan["counts"].get(name, "") for name in counts),
            scan["error"],
        )
        for scan in listed
    ]
    emit_table((*facts, "took", *(name.replace("_", " ") for name in counts), "error"), rows)
