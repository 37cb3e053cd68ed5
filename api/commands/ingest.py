"""framesift ingest, sample-data."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from api.commands.common import open_workspace
from api.terminal import JsonFlag, emit_json, emit_table, progress_bar, size, stdout
from catalog.errors import NotFound
from catalog.tables import Source
from ingest.scan import ScanCounts, scan_source
from sample_data.generate import write_sample_data

_SHOWN_PROBLEMS = 10


def register(app: typer.Typer) -> None:
    """Add this subject's commands."""
    app.command("ingest")(ingest)
    app.command("sample-data")(sample_data)


def ingest(
    source: Annotated[str, typer.Argument(help="The source.")],
    class_list: Annotated[
        Path | None, typer.Option(help="A class_list.json to use instead of the source's own.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Count every label again, changed or not.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Labels counted at once.")] = 2,
    errors: Annotated[
        bool, typer.Option("--errors", help="List what is wrong with its files, and scan nothing.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Catalog a source's files and count the pixels of every class in every label.

    Only what is new or has changed is read. Bad files are recorded and skipped, and tried again
    when they change.
    """
    workspace = open_workspace()
    found = workspace.records.source(source)
    if errors:
        _list_problems(found, as_json)
        return
    with progress_bar(f"ingest {source}", quiet=as_json) as bar:

        def show(counts: ScanCounts) -> None:
            bar.show(counts.frames, None, f"{counts.files:,} files, {counts.frames:,} frames")

        result = scan_source(
            workspace.catalog,
            workspace.records,
            found,
            class_list=class_list,
            full=full,
            workers=workers,
            index_folder=workspace.indexes,
            progress=show,
        )
    counts = result.counts
    problems = workspace.records.problems(scan_id=result.scan)
    if as_json:
        emit_json(
            {"scan": result.scan, **asdict(counts), "problems": [asdict(p) for p in problems]}
        )
        return
    rate = counts.frames / counts.seconds if counts.seconds else 0.0
    stdout.print(
        f"ingested {source}: {counts.files:,} files ({counts.added:,} added, "
        f"{counts.changed:,} changed, {counts.removed:,} removed, {counts.unchanged:,} unchanged)"
    )
    stdout.print(
        f"counted {counts.frames:,} frames, {size(counts.bytes_read)} read in "
        f"{counts.seconds:.1f} s ({rate:.0f} frames/s)"
    )
    if not counts.frames and not counts.unchanged:
        stdout.print("no frames: no camera image with a label of the same name was found")
    if problems:
        stdout.print(
            f"{counts.bad_files:,} bad files, {counts.orphans:,} orphans, "
            f"{counts.unknown_pixels:,} pixels of unknown colour:"
        )
        for problem in problems[:_SHOWN_PROBLEMS]:
            stdout.print(f"  {problem.kind}: {problem.key}: {problem.reason}")
        if len(problems) > _SHOWN_PROBLEMS:
            more = len(problems) - _SHOWN_PROBLEMS
            stdout.print(f"  and {more:,} more: framesift ingest {source} --errors")


def _list_problems(source: Source, as_json: bool) -> None:
    records = open_workspace().records
    scan = records.last_scan(source.id)
    if scan is None:
        raise NotFound("scan", source.name, f"ingest it first: framesift ingest {source.name}")
    problems = records.problems(source_id=source.id)
    if as_json:
        emit_json({"scan": scan.id, "problems": [asdict(problem) for problem in problems]})
    else:
        emit_table(("kind", "file", "reason"), [(p.kind, p.key, p.reason) for p in problems])


def sample_data(
    out: Annotated[Path, typer.Option(help="Folder to write into.")],
    frames: Annotated[int, typer.Option(min=1, help="Frames to draw.")] = 24,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other scenes.")] = 2026,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonFlag = False,
) -> None:
    """Draw road scenes with labels, in A2D2's layout."""
    with progress_bar("drawing", quiet=as_json) as bar:
        made = write_sample_data(
            out,
            frames=frames,
            seed=seed,
            workers=workers,
            progress=lambda done, total: bar.show(done, total, f"{done} of {total} frames"),
        )
    if as_json:
        emit_json(
            {
                "root": str(made.root),
                "frames": made.frames,
                "scenes": list(made.scenes),
                "made": made.made,
                "seconds": round(made.seconds, 3),
            }
        )
    elif made.made:
        stdout.print(
            f"{made.frames:,} frames in {len(made.scenes)} scenes: {made.root} "
            f"({made.seconds:.1f} s)"
        )
    else:
        stdout.print(f"{made.root} already holds these {made.frames:,} frames")
