"""framesift layout list, show, check."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.tables.table import emit_table
from api.cli.terminal import JsonFlag, emit_json, emit_text, stdout
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from ingest.layouts.check_names import LayoutCheck

layout_app = typer.Typer(
    help="Layouts of label data sets: how their files are named, and what a label's pixels mean.",
    no_args_is_help=True,
)

_SHOWN_CLASSES = 12
_SHOWN_VALUES = 4

LayoutArgument = Annotated[str, typer.Argument(help="A preset's name, or a layout file (TOML).")]


@layout_app.command("list")
def list_layouts(as_json: JsonFlag = False) -> None:
    """List the presets."""
    from ingest.layouts.read_layout import presets

    rows = [
        {
            "name": name,
            "title": layout.title,
            "encoding": layout.encoding.text,
            "classes": None if layout.classes is None else len(layout.classes),
            "tags": list(layout.tags),
        }
        for name, layout in presets()
    ]
    if as_json:
        emit_json(rows)
        return
    emit_table(
        ("name", "title", "encoding", "classes"),
        [
            (row["name"], row["title"], row["encoding"], row["classes"] or "the data's own")
            for row in rows
        ],
    )


@layout_app.command("show")
def show_layout(
    layout: LayoutArgument,
    toml: Annotated[
        bool, typer.Option("--toml", help="As a layout file, to be changed for your own data.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show a layout: its patterns, encoding, tags and classes."""
    from ingest.layouts.draft import CLASSES_TO_FILL_IN
    from ingest.layouts.read_layout import layout_text, read_layout

    chosen = read_layout(layout)
    if toml:
        emit_text(layout_text(layout) + (CLASSES_TO_FILL_IN if chosen.lacks_classes else ""))
        return
    if as_json:
        emit_json(dict(chosen.document))
        return
    if chosen.title:
        stdout.print(chosen.title)
    for kind, pattern in chosen.patterns:
        stdout.print(f"{kind}: {pattern.text}")
    stdout.print(f"encoding: {chosen.encoding.text}")
    if "segments" in chosen.document:
        stdout.print(f"segments: {chosen.document['segments']}")
    stdout.print(f"a frame is: {', '.join(chosen.identity)}")
    if chosen.tags:
        stdout.print(f"tags: {', '.join(chosen.tags)}")
    classes = chosen.classes
    if classes is None:
        files = chosen.document.get("class_list_files") or [chosen.document.get("class_file")]
        stdout.print(f"classes: of {files[0]}" if files[0] else "classes: none; give your own")
        return
    stdout.print(f"{len(classes)} classes, {len(classes.ignored)} of them ignored:")
    for key in classes.keys[:_SHOWN_CLASSES]:
        ignored = ", ignored" if key.ignore else ""
        stdout.print(f"  {classes.encoding.key_text(key.key)} {key.name}{ignored}")
    if len(classes.keys) > _SHOWN_CLASSES:
        stdout.print(f"  and {len(classes.keys) - _SHOWN_CLASSES} more (--json)")


@layout_app.command("check")
def check_layout(
    root: Annotated[str, typer.Argument(help="A folder, archive or bucket, as source add has it.")],
    layout: Annotated[
        str | None,
        typer.Option(help="A preset's name, or a layout file; found by the names when left out."),
    ] = None,
    names: Annotated[int, typer.Option(min=1, help="Names to look at.")] = 2000,
    as_json: JsonFlag = False,
) -> None:
    """Say how a source's names map to frames by a layout; nothing is catalogued."""
    from ingest.layouts.check_names import check_names
    from ingest.layouts.read_layout import read_layout
    from ingest.scan.source_layout import own_or_recognised_in
    from ingest.sources.schemes import open_source

    files = open_source(root)
    recognition = None if layout else own_or_recognised_in(files)
    own = None if recognition is None else recognition.own
    if recognition is not None and not recognition.fits and own is None:
        if recognition.draft:
            emit_text(f"# A layout file to begin with:\n\n{recognition.draft}\n")
        raise InvalidInput(recognition.summary(root))
    fits = [] if recognition is None else recognition.fits
    checked = read_layout(layout) if layout else own or fits[0].layout
    check = check_names(checked, (file.key for file in islice(files.list(""), names)))
    if as_json:
        emit_json({"layout": checked.name, "fitting": [[fit.name, fit.share] for fit in fits],
                   **check.to_json()})  # fmt: skip
        return
    if recognition is not None:
        stdout.print(recognition.summary(root))
    _print_check(check)


def _print_check(check: "LayoutCheck") -> None:
    files = ", ".join(f"{number:,} {kind}" for kind, number in check.kinds.items()) or "none"
    stdout.print(f"{check.names:,} names: {files}; {check.unmatched_names:,} fit no pattern")
    stdout.print(
        f"{check.paired:,} frames with image and label, {check.images_alone:,} images without "
        f"label, {check.labels_alone:,} labels without image"
    )
    for tag, values in check.values.items():
        most = values.most_common(_SHOWN_VALUES)
        some = ", ".join(f"{value} ({number:,})" for value, number in most)
        more = f" and {len(values) - len(most):,} more" if len(values) > len(most) else ""
        stdout.print(f"{tag}: {some}{more}")
    for name, kind, fields in check.examples:
        field_values = ", ".join(f"{key} = {value}" for key, value in fields.items())
        stdout.print(f"  {name}: {kind}; {field_values}")
    for first, second in check.twice:
        stdout.print(f"  {second}: is the same file of one frame as {first}")
    if check.unmatched:
        stdout.print("names that fit no pattern, the first of each ending:")
        for name, reason in check.unmatched:
            stdout.print(f"  {name}: {reason}")
