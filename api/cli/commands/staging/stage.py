"""framesift stage."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import long_work
from api.cli.json_report import JsonReport, failures
from api.cli.options.order_options import argument_of, option_of
from api.cli.options.staging_options import CacheOption, WorkersOption
from api.cli.progress_bar import Bar, progress_bar
from api.cli.sigterm import sigterm_exits
from api.cli.target import Record
from api.cli.terminal import JsonFlag, duration, emit_json, size, stdout
from api.schemas.home_orders import Staging
from catalog.errors import InvalidInput
from catalog.text.visible_text import visible
from pipeline.runs.size import form_size

if TYPE_CHECKING:  # commands that ask a server do without what opens sources
    from pipeline.staging.progress import Progress

_SHOWN_EVERY_S = 0.2


def stage(
    dataset: Annotated[str, argument_of(Staging, "dataset")],
    cache: CacheOption = None,
    workers: WorkersOption = Staging.workers,
    verify: Annotated[bool, option_of(Staging, "verify")] = Staging.verify,
    prepare: Annotated[str | None, option_of(Staging, "prepare")] = Staging.prepare,
    to: Annotated[list[str] | None, option_of(Staging, "to")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only print what would be fetched and evicted, and how long it takes."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Fetch a dataset's images and labels into a cache near the job."""
    if dry_run:
        more = {"--verify": verify, "--prepare": prepare, "--to": to}
        if wrong := [option for option, value in more.items() if value]:
            raise InvalidInput(
                f"--dry-run and {', '.join(wrong)}: a plan goes with --cache and --workers alone; "
                "leave --dry-run or the others out"
            )
        _print_plan(long_work.staging_plan(dataset, cache, workers), as_json)
        return
    order = Staging(dataset=dataset, workers=workers, verify=verify, prepare=prepare, to=to or ())
    run_staging(order, cache, as_json=as_json)


def _print_plan(plan: Record, as_json: bool) -> None:
    if as_json:
        emit_json(plan)
        return
    present = plan["files"] - plan["missing_files"]
    stdout.print(
        f"{plan['dataset']}: {plan['files']:,} files, {size(plan['bytes'])}; {present:,} are in "
        f"the cache, {plan['missing_files']:,} ({size(plan['missing_bytes'])}) would be fetched"
    )
    if plan["seconds"] is not None:
        stdout.print(f"at the rate of earlier stagings in {duration(plan['seconds'])}")
    if not plan["fits"]:
        stdout.print(
            f"they do not fit: {plan['why']}; framesift train and validate read them through the "
            "cache, a part at a time"
        )
    for holder in plan["holders"]:
        stdout.print(visible(f"  holds its space: {holder}"))
    if plan["evicted_bytes"]:
        stdout.print(f"{size(plan['evicted_bytes'])} would be evicted")
    for dataset in plan["evicted_datasets"]:
        stdout.print(visible(f"  evicted: {dataset}"))


def run_staging(order: Staging, cache: Path | None, *, as_json: bool) -> None:
    """Stage a dataset into a cache, and print how it goes."""
    with sigterm_exits(), progress_bar(f"stage {order.dataset}", quiet=as_json) as bar:
        reports = long_work.Reports(
            progress=_progress(bar, as_json),
            failed=failures(as_json=as_json),
            prepared=lambda frames, of: bar.show(frames, of, f"{frames:,} of {of:,} prepared"),
            state=lambda state: bar.show(0, None, state),
        )
        staging = long_work.stage(order, cache, reports)
    if as_json:
        emit_json(staging)
    else:
        stdout.print(
            f"{'verified' if order.verify else 'staged'} {staging['dataset']} version "
            f"{staging['version']}: {staging['files']:,} "
            f"files, {size(staging['bytes'])}; fetched {staging['files_copied']:,} "
            f"({size(staging['bytes_copied'])}) into {staging['cache']}"
        )
        for path in staging["damaged"]:
            stdout.print(visible(f"  was damaged, and was fetched again: {path}"))
        if prepared := staging["prepared"]:
            stdout.print(
                f"prepared {prepared['frames']:,} frames at {form_size(prepared['size']).words}, "
                f"{size(prepared['bytes'])}; decoded {prepared['made']:,} into "
                f"{prepared['folder']}"
            )


def _progress(bar: Bar, as_json: bool) -> "Callable[[Progress], None]":
    report, last = JsonReport(), time.monotonic()

    def show(progress: "Progress") -> None:
        nonlocal last
        if as_json:
            report.progress(progress.to_json())
            return
        if time.monotonic() - last < _SHOWN_EVERY_S:
            return
        last = time.monotonic()
        eta = progress.eta_s
        remaining = "" if eta is None else f", {duration(eta)} left"
        if progress.recalling:
            remaining = f", {progress.recalling:,} files being recalled from an archive"
        bar.show(
            progress.bytes,
            progress.of_bytes,
            f"{progress.files:,} of {progress.of_files:,} files, {size(progress.bytes)} of "
            f"{size(progress.of_bytes)}, {progress.mb_per_s:.1f} MB/s{remaining}",
        )

    return show
