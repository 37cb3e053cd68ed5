"""framesift stage, cache."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import long_work
from api.cli.terminal import (
    Bar,
    JsonFlag,
    duration,
    emit_json,
    emit_progress,
    emit_text,
    progress_bar,
    size,
    stdout,
)
from catalog.text.visible_text import visible

if TYPE_CHECKING:  # commands that ask a server do without what opens sources
    from pipeline.staging.fetch import FailedFile
    from pipeline.staging.progress import Progress

_SHOWN_EVERY_S = 0.2
_JSON_EVERY_S = 2.0
_SHOWN_FAILURES = 1_000


cache_app = typer.Typer(no_args_is_help=True, help="What is staged near the jobs.")

CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder of the cache; FRAMESIFT_CACHE by default.")
]
WorkersOption = Annotated[int, typer.Option("--workers", min=1, help="Files fetched at once.")]


def stage(
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    cache: CacheOption = None,
    workers: WorkersOption = 4,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read what is in the cache again; fetch what is damaged."),
    ] = False,
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTHxHEIGHT",
            help="Also decode the frames once, at a training's input size.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Fetch a dataset's images and labels into a cache near the job."""
    _stage(dataset, cache, workers, verify=verify, prepare=prepare, as_json=as_json)


@cache_app.command("verify")
def verify_(
    dataset: Annotated[str, typer.Argument(help="NAME, or NAME@VERSION.")],
    cache: CacheOption = None,
    workers: WorkersOption = 4,
    as_json: JsonFlag = False,
) -> None:
    """Read a dataset's files in the cache again; fetch what is damaged or missing."""
    _stage(dataset, cache, workers, verify=True, prepare=None, as_json=as_json)


def _stage(
    dataset: str,
    cache: Path | None,
    workers: int,
    *,
    verify: bool,
    prepare: str | None,
    as_json: bool,
) -> None:
    with progress_bar(f"stage {dataset}", quiet=as_json) as bar:
        told = long_work.Told(
            progress=_progress(bar, as_json),
            failed=_failed(as_json),
            prepared=lambda frames, of: bar.show(frames, of, f"{frames:,} of {of:,} prepared"),
            state=lambda state: bar.show(0, None, state),
        )
        staging = long_work.stage(dataset, cache, workers, verify, prepare, told)
    if as_json:
        emit_json(staging)
    else:
        stdout.print(
            f"staged {staging['dataset']} version {staging['version']}: {staging['files']:,} "
            f"files, {size(staging['bytes'])}; fetched {staging['files_copied']:,} "
            f"({size(staging['bytes_copied'])}) into {staging['cache']}"
        )
        for path in staging.get("damaged") or ():  # an older server's result has none
            stdout.print(visible(f"  was damaged, and was fetched again: {path}"))
        if prepared := staging.get("prepared"):
            stdout.print(
                f"prepared {prepared['frames']:,} frames at {prepared['size']}, "
                f"{size(prepared['bytes'])}; decoded {prepared['made']:,} into "
                f"{prepared['folder']}"
            )


def _progress(bar: Bar, as_json: bool) -> "Callable[[Progress], None]":
    last = time.monotonic()

    def show(progress: "Progress") -> None:
        nonlocal last
        if time.monotonic() - last < (_JSON_EVERY_S if as_json else _SHOWN_EVERY_S):
            return
        last = time.monotonic()
        if as_json:
            emit_progress(progress.to_json())
            return
        eta = progress.eta_s
        left = "" if eta is None else f", {duration(eta)} left"
        bar.show(
            progress.bytes,
            progress.of_bytes,
            f"{progress.files:,} of {progress.of_files:,} files, {size(progress.bytes)} of "
            f"{size(progress.of_bytes)}, {progress.mb_per_s:.1f} MB/s{left}",
        )

    return show


def _failed(as_json: bool) -> "Callable[[FailedFile], None]":
    """Prints each file that cannot be had, up to a thousand."""
    printed = 0

    def show(failure: "FailedFile") -> None:
        nonlocal printed
        printed += 1
        if printed <= _SHOWN_FAILURES:
            said = {"failed": failure.place, "reason": failure.reason}
            line = json.dumps(said, ensure_ascii=False) if as_json else f"failed: {failure}"
            emit_text(line, err=True, end="\n")

    return show
