"""framesift watch."""

import hashlib
import json
import signal
import socket
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.commands.ingest import CheckImagesOption, ClassListOption, MaxRemovedOption
from api.cli.options.common import open_workspace
from api.cli.options.order_options import argument_of
from api.cli.terminal import emit_text, stderr, stdout
from api.schemas.home_orders import Scan
from catalog.errors import InvalidInput

if TYPE_CHECKING:
    from api.workspace import Workspace
    from ingest.watch.watcher import Batched


def watch(
    source: Annotated[str, argument_of(Scan, "source")],
    events: Annotated[
        str,
        typer.Option(
            help="Source of change events: inotify (folders, by default), sqs://QUEUE or the "
            "https URL of an SQS queue, kafka://HOST:PORT/TOPIC, or none."
        ),
    ] = "",
    events_config: Annotated[
        Path | None,
        typer.Option(help="File of librdkafka properties for kafka://, such as security.protocol."),
    ] = None,
    relist: Annotated[
        float,
        typer.Option(
            min=0, help="Interval between full listings of the source [s]; 0: only at the start."
        ),
    ] = 300.0,
    class_list: ClassListOption = None,
    check_images: CheckImagesOption = Scan.check_images,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Labels counted at once; as many as cores by default."),
    ] = None,
    max_removed: MaxRemovedOption = Scan.max_removed,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON document per line for each batch.")
    ] = False,
) -> None:
    """Catalog new, changed and removed files as they come, until Ctrl-C or SIGTERM.

    The whole source is scanned first, as ingest does, and again now and then. What happens
    meanwhile is heard of and follows in batches within seconds.
    """
    from api.server.compacting import compacting
    from catalog.records.sources import recorded_source
    from ingest.engines.choice import EngineChoice, open_engine
    from ingest.scan.scan import ScanOptions
    from ingest.watch.choice import EventChoice, open_events
    from ingest.watch.watcher import Watcher, WatchOptions
    from pipeline.archive.recall import recall_listed

    workspace = open_workspace()
    record = recorded_source(workspace.records, source)
    if events_config is not None and not events.startswith("kafka://"):
        raise InvalidInput("--events-config is Kafka's: add --events kafka://HOST:PORT/TOPIC")
    _note_readable(events_config)
    stop = _stop_on_signals()
    choice = EventChoice(events, events_config, _group(workspace, source), workspace.indexes)
    scan = ScanOptions(
        class_list,
        check_images=check_images,
        index_folder=workspace.indexes,
        recall=partial(recall_listed, workspace.archive_access),
        max_removed=max_removed,
    )
    with open_engine(EngineChoice(workers=workers)) as engine, compacting(workspace, _warn):
        Watcher(
            workspace.whole_catalog,
            workspace.records,
            record,
            WatchOptions(scan, relist),
            engine,
            events=partial(open_events, record, choice, stop, _warn),
            stop=stop,
            report=_print_json if as_json else _print_line,
            warn=_warn,
        ).run()
    workspace.close()


def _stop_on_signals() -> threading.Event:
    """Set by the first Ctrl-C or SIGTERM; the second ends the process, which loses nothing."""
    stop = threading.Event()

    def handle(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return stop


def _group(workspace: "Workspace", source: str) -> str:
    """Two catalogs that watch one topic keep offsets of their own."""
    database = workspace.catalog_location.metadata
    where = f"{socket.gethostname()}:{database}" if isinstance(database, Path) else str(database)
    return f"framesift-{source}-{hashlib.sha256(where.encode()).hexdigest()[:12]}"


def _note_readable(config: Path | None) -> None:
    if config is not None and config.is_file() and config.stat().st_mode & 0o077:
        _warn(f"{config} may be read by others; if it holds a password: chmod 600 {config}")


def _warn(line: str) -> None:
    stderr.print(f"warning: {' '.join(line.split())}")


def _print_json(batch: "Batched") -> None:
    counts = batch.counts
    line = {
        "whole": batch.is_whole_source,
        "folders": batch.folders,
        "files": counts.files,
        "added": counts.added,
        "changed": counts.changed,
        "removed": counts.removed,
        "frames": counts.frames,
        "bad_files": counts.bad_files,
        "commits": counts.commits,
        "seconds": round(batch.seconds, 3),
    }
    emit_text(json.dumps(line), end="\n")


def _print_line(batch: "Batched") -> None:
    counts = batch.counts
    if not (batch.is_whole_source or counts.commits or counts.bad_files):
        return
    looked = "whole source" if batch.is_whole_source else "batch"
    stdout.print(
        f"{looked}: {counts.added:,} added, {counts.changed:,} changed, {counts.removed:,} "
        f"removed, {counts.frames:,} frames, {counts.bad_files:,} bad; {batch.seconds:.1f} s"
    )
