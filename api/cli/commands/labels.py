"""framesift labels check, convert."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.json_report import JsonReport
from api.cli.long_work import check_labels
from api.cli.options.order_options import argument_of, option_of
from api.cli.progress_bar import progress_bar
from api.cli.terminal import JsonFlag, emit_json, stdout
from api.schemas.home_orders import LabelCheck
from catalog.text.visible_text import visible

if TYPE_CHECKING:
    from ingest.conversion.convert import Conversion

labels_app = typer.Typer(no_args_is_help=True, help="Label images.")

_SHOWN = 10


@labels_app.callback()
def labels() -> None:
    """Label images."""


@labels_app.command("check")
def check(
    source: Annotated[str, argument_of(LabelCheck, "source")],
    labels: Annotated[int | None, option_of(LabelCheck, "labels")] = LabelCheck.labels,
    as_json: JsonFlag = False,
) -> None:
    """Say what is odd about a source's labels: keys of no class, classes that none has, pairs.

    Reads labels again; changes nothing.
    """
    order = LabelCheck(source=source, labels=labels)
    with progress_bar(f"labels of {source}", quiet=as_json) as bar:
        checked = check_labels(order, bar.show)
    if as_json:
        emit_json(checked)
    else:
        _print(checked)


def _print(checked: Mapping[str, Any]) -> None:
    stdout.print(f"{checked['labels']:,} labels read, {checked['pixels']:,} pixels")
    _print_unknown(checked["unknown_keys"])
    for sentence in checked["suspicions"]:
        stdout.print(visible(sentence))
    if checked["classes_never_seen"]:
        stdout.print(visible(f"classes of no label: {', '.join(checked['classes_never_seen'])}"))
    for name, what in (
        ("labels_all_ignored", "labels with ignored classes alone"),
        ("labels_unread", "labels that could not be read"),
    ):
        if checked[name]:
            stdout.print(visible(f"{len(checked[name]):,} {what}, such as {checked[name][0]}"))
    if listed := checked["problems"]:
        stdout.print(f"{len(listed):,} problems of the last scans, about pairs and files:")
        for row in listed[:_SHOWN]:
            stdout.print(visible(f"  {row['kind']}: {row['file']}: {row['reason']}"))
    if not (checked["unknown_keys"] or checked["suspicions"] or listed or checked["labels_unread"]):
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
