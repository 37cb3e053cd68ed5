"""framesift ingest, sample-data."""

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli import destination
from api.cli.exit_codes import ExitCode, StrictFlag, end
from api.cli.json_report import JsonReport
from api.cli.long_work import server_scan
from api.cli.options.order_options import argument_of, option_of
from api.cli.progress_bar import progress_bar
from api.cli.tables.table import emit_table
from api.cli.target import home_session
from api.cli.terminal import JsonFlag, duration, emit_json, size, stdout
from api.schemas.home_orders import Scan
from catalog.errors import InvalidInput
from catalog.text.visible_text import visible
from catalog.values import Problem
from ingest.scan.scan_counts import Progress, ScanCounts

_SHOWN_PROBLEMS = 10
_SHOWN_EVERY_S = 0.2


ClassListOption = Annotated[
    Path | None, typer.Option(help="A class_list.json to use instead of the source's own.")
]

CheckImagesOption = Annotated[bool, option_of(Scan, "check_images")]
MaxRemovedOption = Annotated[float, option_of(Scan, "max_removed")]


def ingest(
    context: typer.Context,
    source: Annotated[str, argument_of(Scan, "source")],
    class_list: ClassListOption = None,
    full: Annotated[bool, option_of(Scan, "full")] = Scan.full,
    check_images: CheckImagesOption = Scan.check_images,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Labels counted at once, or Dask workers; as many as cores by default."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where labels are counted: threads (here) or dask.")
    ] = "threads",
    scheduler: Annotated[
        str, typer.Option(help="Address of a running Dask scheduler: tls://host:8786.")
    ] = "",
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Allow a --scheduler of tcp://, which runs code that anybody can send it.",
        ),
    ] = False,
    cluster: Annotated[
        str, typer.Option(help="Where Dask workers are started: local, slurm or lsf.")
    ] = "local",
    unit_frames: Annotated[
        int, typer.Option(min=1, max=100_000, help="Frames that a worker gets at a time.")
    ] = 2_000,
    write_units: Annotated[
        Path | None,
        typer.Option(help="Only write units for a job array into this new folder; count nothing."),
    ] = None,
    collect_units: Annotated[
        Path | None, typer.Option(help="Catalog what a job array counted in this folder.")
    ] = None,
    folders: Annotated[list[str] | None, option_of(Scan, "folders")] = None,
    flat_folders: Annotated[list[str] | None, option_of(Scan, "flat_folders")] = None,
    max_removed: MaxRemovedOption = Scan.max_removed,
    errors: Annotated[bool, option_of(Scan, "errors")] = Scan.errors,
    strict: StrictFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Catalog a source's files and count the pixels of every class in every label.

    Only what is new or has changed is read. Bad files are recorded and skipped, and tried again
    when they change. A source of labels alone is enough. With --json, progress goes to the error
    output as a JSON line every few seconds.
    """
    order = Scan(
        source=source, full=full, max_removed=max_removed, check_images=check_images,
        errors=errors, folders=folders or (), flat_folders=flat_folders or (),
    )  # fmt: skip
    if destination.server() is not None:
        _need_of_server(context)
        _end(strict, *_of_server(order, as_json))
        return
    from ingest.engines.choice import EngineChoice  # a server is asked without it

    if (folders or flat_folders) and (write_units or collect_units):
        raise InvalidInput("--folder and --flat-folder exclude --write-units and --collect-units")
    if write_units is not None and collect_units is not None:
        raise InvalidInput("--write-units and --collect-units exclude each other")
    scans, made = home_session().scans, destination.tell
    if write_units is not None and not errors:
        with scan_progress(f"list {source}", as_json=as_json) as show:
            units = scans.write_units(
                order, write_units, show, made=made, class_list=class_list, unit_frames=unit_frames
            )
        _show_units(source, write_units, units, as_json)
        return
    choice = EngineChoice(engine, workers, scheduler, cluster, unit_frames, insecure)
    with scan_progress(f"ingest {source}", as_json=as_json) as show:
        done = scans.run(
            order, show, made=made, class_list=class_list, engine=choice, counted=collect_units
        )
    _show(source, done.to_json(), done.counts, done.problems, as_json)
    _end(strict, done.counts, done.problems)


def _show(
    source: str,
    document: Mapping[str, Any],
    counts: ScanCounts | None,
    problems: Sequence[Problem],
    as_json: bool,
) -> None:
    if as_json:
        emit_json(document)
    elif counts is None:
        emit_table(("kind", "file", "reason"), [(p.kind, p.key, p.reason) for p in problems])
    else:
        _show_result(source, counts, problems)


def _end(strict: bool, counts: ScanCounts | None, problems: Sequence[Problem]) -> None:
    """End as --strict says: of a scan's counts, or of what is wrong with a source's files."""
    bad = any(problem.kind in _BAD for problem in problems)
    end(ExitCode.BAD_FILES, when=strict and (bad or bool(counts and counts.bad_files)))
    nothing = counts is not None and not counts.frames and not counts.unchanged
    end(ExitCode.NOTHING_FOUND, when=strict and nothing)


_BAD = ("bad_file", "unreadable")
"""Kinds of problems by which a file is left out."""

_AT_SERVER = frozenset(
    {"source", "full", "max_removed", "check_images", "errors", "strict", "as_json"}
)


def _need_of_server(context: typer.Context) -> None:
    for name in context.params.keys() - _AT_SERVER:
        origin = context.get_parameter_source(name)
        if origin is not None and origin.name != "DEFAULT":
            raise InvalidInput(
                f"--{name.replace('_', '-')}: a server scans by its own settings: with --server "
                "only --full, --max-removed, --no-check-images and --errors are taken"
            )


def _of_server(order: Scan, as_json: bool) -> tuple[ScanCounts | None, list[Problem]]:
    """The same at the chosen server: a job there, which goes on where this is interrupted."""
    with progress_bar(f"ingest {order.source}", quiet=as_json or order.errors) as bar:
        done = server_scan(order, lambda job: bar.show(0, None, str(job["state"])))
    names = {field.name for field in fields(ScanCounts)}
    counted = {name: value for name, value in done.items() if name in names}
    counts = None if order.errors else ScanCounts(**counted)
    problems = [Problem(**one) for one in done["problems"]]
    _show(order.source, done, counts, problems, as_json)
    return counts, problems


def _show_units(source: str, folder: Path, units: int, as_json: bool) -> None:
    if as_json:
        emit_json({"folder": str(folder), "units": units})
        return
    stdout.print(f"{units:,} units of {source} in {folder}; count each of them, for instance:")
    command = shlex.join(["python", "-m", "ingest.scan.unit_files", str(folder)])
    of_slurm, of_lsf = (
        shlex.quote(f"{command} ${number}") for number in ("SLURM_ARRAY_TASK_ID", "LSB_JOBINDEX")
    )
    stdout.print(f"  sbatch --array=1-{units} --wrap {of_slurm}")
    stdout.print(f"  bsub -J 'count[1-{units}]' {of_lsf}")
    collect = shlex.join(["framesift", "ingest", source, "--collect-units", str(folder)])
    stdout.print(f"then: {collect}")


def _show_result(source: str, counts: ScanCounts, problems: Sequence[Problem]) -> None:
    stdout.print(
        f"ingested {source}: {counts.files:,} files ({counts.added:,} added, "
        f"{counts.changed:,} changed, {counts.removed:,} removed, {counts.unchanged:,} unchanged)"
    )
    stdout.print(
        f"counted {counts.frames:,} frames, {size(counts.bytes_read)} read in "
        f"{counts.seconds:.1f} s ({counts.frames_per_s:.0f} frames/s, {counts.mb_per_s:.1f} MB/s)"
    )
    if counts.labels_alone:
        stdout.print(f"{counts.labels_alone:,} of them are labels without a camera image")
    if counts.unlabelled:
        stdout.print(f"{counts.unlabelled:,} more frames have no label")
    if counts.images_archived:
        stdout.print(
            f"{counts.images_archived:,} camera images are on tape or in an archive: they are not "
            "opened, and checked by the first scan after they are recalled"
        )
    if not counts.frames and not counts.unlabelled and not counts.unchanged:
        why = (
            "no name of a label or image follows the source's layout; framesift layout check ROOT "
            "says which layouts fit, and framesift source set NAME --layout takes one"
        )
        if any(problem.kind in _BAD for problem in problems):
            why = "no label or image could be used; what was wrong with them:"
        stdout.print(f"no frames: {why}")
    if problems:
        stdout.print(
            f"{counts.bad_files:,} bad files, {counts.orphans:,} orphans, "
            f"{counts.unknown_pixels:,} pixels of no class:"
        )
        for problem in problems[:_SHOWN_PROBLEMS]:
            stdout.print(visible(f"  {problem.kind}: {problem.key}: {problem.reason}"))
        if len(problems) > _SHOWN_PROBLEMS:
            more = len(problems) - _SHOWN_PROBLEMS
            stdout.print(f"  and {more:,} more: framesift ingest {source} --errors")


@contextmanager
def scan_progress(title: str, *, as_json: bool) -> Iterator[Progress]:
    """Shows a scan's progress: a bar for people, with ``as_json`` lines on the error output."""
    report, last = JsonReport(), time.monotonic()
    with progress_bar(title, quiet=as_json) as bar:

        def show(counts: ScanCounts) -> None:
            nonlocal last
            if as_json:
                report.progress(counts.to_json())
                return
            if time.monotonic() - last < _SHOWN_EVERY_S:
                return
            last = time.monotonic()
            if counts.recalling:
                bar.show(0, None, f"{counts.recalling:,} labels come from their archive")
                return
            eta = counts.eta_s
            remaining = "" if eta is None else f", {duration(eta)} left"
            bar.show(
                counts.files,
                counts.expected_files,
                f"{counts.files:,} files ({counts.files_per_s:,.0f}/s), {counts.frames:,} frames "
                f"({counts.frames_per_s:,.0f}/s), {counts.mb_per_s:.1f} MB/s{remaining}",
            )

        yield show


def sample_data(
    out: Annotated[Path, typer.Option(help="Folder to write into.")],
    frames: Annotated[int, typer.Option(min=1, help="Frames to draw.")] = 24,
    seed: Annotated[int, typer.Option(min=0, help="Seed; another one draws other scenes.")] = 2026,
    layout: Annotated[str, typer.Option(help="A preset's name, or a layout file (TOML).")] = "a2d2",
    reduce: Annotated[int, typer.Option(help="Divide width and height by this: 1, 2, 4 or 8.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: JsonFlag = False,
) -> None:
    """Draw road scenes with labels, 1920 x 1208, in the layout of any data set."""
    from sample_data.generate import write_sample_data

    with progress_bar("drawing", quiet=as_json) as bar:
        written = write_sample_data(
            out,
            frames=frames,
            seed=seed,
            layout=layout,
            reduced=reduce,
            workers=workers,
            progress=lambda done, total: bar.show(done, total, f"{done} of {total} frames"),
        )
    if as_json:
        emit_json(
            {
                "root": str(written.root),
                "frames": written.frames,
                "scenes": list(written.scenes),
                "made": written.made,
                "seconds": round(written.seconds, 3),
            }
        )
    elif written.made:
        stdout.print(
            f"{written.frames:,} frames in {len(written.scenes)} scenes: {written.root} "
            f"({written.seconds:.1f} s)"
        )
    else:
        stdout.print(f"{written.root} already holds these {written.frames:,} frames")
