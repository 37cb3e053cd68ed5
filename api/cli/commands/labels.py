"""framesift labels check, convert."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.json_report import JsonReport
from api.cli.options.common import open_workspace
from api.cli.progress_bar import progress_bar
from api.cli.terminal import JsonFlag, emit_json, stdout
from catalog.text.visible_text import visible

if TYPE_CHECKING:
    from catalog.values import Problem
    from ingest.conversion.convert import Conversion

labels_app = typer.Typer(no_args_is_help=True, help="Label images.")

_SHOWN = 10


@labels_app.callback()
def labels() -> None:
    """Label images."""


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
    unknown = found["unknown_keys"]
    if unknown:
        stdout.print(f"{len(unknown):,} keys that no class has:")
        for row in unknown[:_SHOWN]:
            stdout.print(visible(
                f"  {row['key']}: {row['pixels']:,} pixels in {row['labels']:,} labels, such as "
                f"{row['examples'][0]}"
            ))  # fmt: skip
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
    if not (unknown or found["suspicions"] or listed or found["labels_unread"]):
        stdout.print("nothing is odd about them")


@labels_app.command("convert")
def convert(
    format_name: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="coco, coco-panoptic, cityscapes-polygons, cvat, labelme, scalabel or rle-json.",
        ),
    ],
    sources: Annotated[
        list[Path],
        typer.Argument(help="Files of annotations; of labelme and Cityscapes folders, too."),
    ],
    to: Annotated[
        Path, typer.Option(help="The data set's root: labels/ and layout.toml are written there.")
    ],
    images: Annotated[
        Path | None,
        typer.Option(help="Folder that the annotations name images below; --to by default."),
    ] = None,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Make label images of polygons, run lengths or panoptic images, and a layout for source add.

    Images stay where they are. A frame whose annotations cannot be used is listed and gets no
    label. Repeated, it writes what is missing or has changed.
    """
    from ingest.conversion.convert import convert as convert_annotations

    report = JsonReport()
    with progress_bar(f"convert {format_name}", quiet=as_json) as bar:

        def show(done: "Conversion") -> None:
            if as_json:
                counts = {"frames": done.done, "expected": done.expected, "written": done.written}
                report.progress(counts)
            bar.show(done.done, done.expected, f"{done.done:,} of {done.expected:,} frames")

        done = convert_annotations(format_name, sources, to, images, progress=show)
    if as_json:
        emit_json(done.to_json())
    else:
        _print_conversion(done, to)
    end(ExitCode.BAD_FILES, when=strict and bool(done.problems))
    end(ExitCode.NOTHING_FOUND, when=strict and not done.expected)


def _print_conversion(done: "Conversion", to: Path) -> None:
    stdout.print(
        f"{done.expected:,} frames: {done.written:,} labels written, {done.unchanged:,} were there "
        "already"
    )
    if done.images_missing:
        stdout.print(
            f"{done.images_missing:,} labels have no image where the annotations say, and their "
            "size is unchecked: --images names the images' folder"
        )
    for what, number in sorted(done.left_out.items()):
        stdout.print(visible(f"left out: {number:,} {what}"))
    if done.problems:
        stdout.print(f"{len(done.problems):,} frames without label, for what is wrong with them:")
        for problem in done.problems[:_SHOWN]:
            stdout.print(visible(f"  {problem.kind}: {problem.key}: {problem.reason}"))
        if len(done.problems) > _SHOWN:
            stdout.print(f"  and {len(done.problems) - _SHOWN:,} more: --json lists all")
    stdout.print(visible(f"next: framesift source add NAME {to}"))
