"""framesift labels check."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.options.common import open_workspace
from api.cli.progress_bar import progress_bar
from api.cli.terminal import JsonFlag, emit_json, stdout
from catalog.text.visible_text import visible

if TYPE_CHECKING:
    from catalog.values import Problem

labels_app = typer.Typer(no_args_is_help=True, help="Label images of a source.")

_SHOWN = 10


@labels_app.callback()
def labels() -> None:
    """Label images of a source."""


@labels_app.command("check")
def check(
    source: Annotated[str, typer.Argument(help="The source; it has been scanned.")],
    most: Annotated[
        int | None,
        typer.Option("--labels", min=1, help="Read so many, spread over all; all by default."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what is odd about a source's labels: keys of no class, classes that none has, pairs.

    Reads labels again; changes nothing.
    """
    from catalog.records.scans import recorded_problems
    from catalog.records.sources import recorded_source
    from ingest.scan.check_labels import check_labels

    workspace = open_workspace()
    recorded = recorded_source(workspace.records, source)
    with progress_bar(f"labels of {source}", quiet=as_json) as bar:
        checked, unread = check_labels(
            workspace.catalog,
            recorded,
            most=most,
            index_folder=workspace.indexes,
            progress=lambda done, of: bar.show(done, of, ""),
        )
    problems = recorded_problems(workspace.records, source_id=recorded.id)
    found = {
        **checked.to_json(),
        "labels_unread": unread,
        "problems": [
            {"kind": problem.kind, "file": problem.key, "reason": problem.reason}
            for problem in problems
            if problem.kind != "unknown_colours"
        ],
    }
    if as_json:
        emit_json(found)
    else:
        _print(found, problems)


def _print(found: dict[str, Any], problems: "list[Problem]") -> None:
    stdout.print(f"{found['labels']:,} labels read, {found['pixels']:,} pixels")
    _print_unknown(found["unknown_keys"])
    for sentence in found["suspicions"]:
        stdout.print(visible(sentence))
    if found["classes_never_seen"]:
        stdout.print(visible(f"classes of no label: {', '.join(found['classes_never_seen'])}"))
    for name, what in (
        ("labels_all_ignored", "labels with ignored classes alone"),
        ("labels_unread", "labels that could not be read"),
    ):
        if found[name]:
            stdout.print(visible(f"{len(found[name]):,} {what}, such as {found[name][0]}"))
    listed = [problem for problem in problems if problem.kind != "unknown_colours"]
    if listed:
        stdout.print(f"{len(listed):,} problems of the last scans, about pairs and files:")
        for problem in listed[:_SHOWN]:
            stdout.print(visible(f"  {problem.kind}: {problem.key}: {problem.reason}"))
    if not (found["unknown_keys"] or found["suspicions"] or listed or found["labels_unread"]):
        stdout.print("nothing is odd about them")


def _print_unknown(unknown: Sequence[Mapping[str, Any]]) -> None:
    if not unknown:
        return
    stdout.print(f"{len(unknown):,} keys that no class has:")
    for row in unknown[:_SHOWN]:
        stdout.print(visible(
            f"  {row['key']}: {row['pixels']:,} pixels in {row['labels']:,} labels, such as "
            f"{row['examples'][0]}"
        ))  # fmt: skip
    if len(unknown) > _SHOWN:
        stdout.print(f"  and {len(unknown) - _SHOWN:,} more (--json)")
