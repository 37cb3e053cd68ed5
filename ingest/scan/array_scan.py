"""The two ends of a scan that a job array counts: units written, counts collected."""

import shutil
from pathlib import Path

from catalog.errors import InvalidInput, RemovalRefused
from catalog.records.store import RecordStore
from catalog.records.tables import Scan as ScanRow
from catalog.records.tables import Source
from catalog.store import CatalogStore
from ingest.scan import scan_record
from ingest.scan.scan import Scan, ScanOptions, ScanResult
from ingest.scan.scan_counts import Progress
from ingest.scan.unit_files import UnitFolder


def write_units(
    store: CatalogStore,
    records: RecordStore,
    source: Source,
    options: ScanOptions,
    folder: Path,
    *,
    unit_frames: int,
    progress: Progress | None = None,
) -> int:
    """List a source and write what is to be counted as units into a new folder; how many units.

    The scan stays open, as "running", until ``collect_units``, or until another scan begins.
    """
    number = scan_record.begin(records, source)
    with Scan.started(store, records, source, options, number) as scan:
        try:
            with scan.portions(unit_frames, ("",), progress) as portions:
                header = {
                    "scan": number,
                    "source": source.name,
                    "class_list": scan.class_list.to_json(),
                }
                units = UnitFolder(folder).write(scan.task(), portions, scan.counts, header)
        except RemovalRefused as error:
            shutil.rmtree(folder)
            scan_record.finish(records, number, "failed", scan.counts, str(error))
            raise
        scan_record.update(records, number, scan.counts)
    return units


def collect_units(
    store: CatalogStore,
    records: RecordStore,
    source: Source,
    options: ScanOptions,
    folder: Path,
    *,
    progress: Progress | None = None,
) -> ScanResult:
    """Commit what the elements of a job array counted.

    Raises:
        InvalidInput: Units are not counted yet, or are another source's or an older scan's.
    """
    units = UnitFolder(folder)
    header = units.header()
    missing = units.missing()
    if missing:
        some = ", ".join(map(str, missing[:5])) + ("..." if len(missing) > 5 else "")
        raise InvalidInput(
            f"{folder}: {len(missing):,} of {header['units']:,} units are not counted ({some}); "
            f"count each: python -m ingest.scan.unit_files {folder} NUMBER"
        )
    number = header["scan"]
    if header["source"] != source.name:
        raise InvalidInput(f"{folder}: holds units of source {header['source']}")
    with records.reading() as session:
        row = session.get(ScanRow, number)
        if row is None or row.source_id != source.id or row.state != "running":
            raise InvalidInput(
                f"{folder}: another scan of {source.name} began, or these units were collected "
                "already; write units again"
            )
    with Scan.started(store, records, source, options, number) as scan:
        if scan.class_list.to_json() != header["class_list"]:
            raise InvalidInput(
                f"{folder}: the source's class list changed after the units were written; "
                "write them again"
            )
        scan.commit(units.results(scan.counts), progress)
        scan_record.finish(records, number, "done", scan.counts)
        return ScanResult(number, scan.counts)
