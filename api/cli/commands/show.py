"""framesift show."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer

from api.cli import destination
from api.cli.options.common import AtOption
from api.cli.tables.table import emit_table
from api.cli.target import target
from api.cli.terminal import JsonFlag, emit_json, stdout
from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_write


def show(
    frame: Annotated[str, typer.Argument(metavar="FRAME", help="The frame's fkey.")],
    at: AtOption = None,
    opens: Annotated[
        bool, typer.Option("--open", help="Open the frame's page of the server in a browser.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="Write the model's newest prediction of it to --out.")
    ] = None,
    errors: Annotated[
        bool,
        typer.Option("--errors", help="In its place the pixels of another class than the label."),
    ] = False,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class", help="Only this class of the prediction, of errors of the label; repeatable."
        ),
    ] = None,
    taken_for: Annotated[
        list[str] | None,
        typer.Option(
            help="With --errors: only pixels that the model took for this class; repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the prediction: .png, .jpg, .jpeg or .webp.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a frame: its file's columns and its tags, or a model's prediction over its image."""
    if model is not None:
        if opens or as_json or at is not None:
            raise InvalidInput("--model: a picture is written; leave --open, --json and --at out")
        _write_prediction(frame, model, errors, classes, taken_for, out)
        return
    if errors or classes or taken_for or out is not None:
        raise InvalidInput(
            "--errors, --class, --taken-for, --out: are of a prediction; give --model, too"
        )
    body = target().frame(frame, at=at)
    if opens:
        server = destination.server()
        if server is None:
            raise InvalidInput("--open: a page is a server's: give --server, or leave --open out")
        page = f"{server.rstrip('/')}/frames/{quote(frame, safe='/:')}"
        stdout.print(page, soft_wrap=True)
        webbrowser.open(page if at is None else f"{page}?at={at}")
    elif as_json:
        emit_json(dict(body))
    else:
        emit_table(
            ("name", "value"),
            [(name, value) for name, value in body.items() if value not in (None, "")],
        )


_FORMATS: dict[str, Literal["png", "jpeg", "webp"]] = {
    ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp",
}  # fmt: skip


def _write_prediction(
    frame: str,
    model: str,
    errors: bool,
    classes: Sequence[str] | None,
    taken_for: Sequence[str] | None,
    out: Path | None,
) -> None:
    if taken_for and not errors:
        raise InvalidInput("--taken-for: says which errors are drawn; give --errors, too")
    format_ = _FORMATS.get(out.suffix.lower()) if out is not None else None
    if out is None or format_ is None:
        raise InvalidInput(
            f"--out {out or 'is missing'}: the prediction is a picture; expected a file of "
            f"{', '.join(_FORMATS)}"
        )
    picture = target().prediction(
        frame, model=model, errors=errors, classes=classes, taken_for=taken_for, format=format_
    )
    atomic_write(out, bytes(picture))
    stdout.print(f"wrote {out}", soft_wrap=True)
