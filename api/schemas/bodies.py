"""Records as JSON: the same shape in the API and behind --json."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ingest.sources.source_options import SourceOptions

if TYPE_CHECKING:  # commands on one of the two stores do without the other's database
    from catalog.care.snapshot_diff import TagChange
    from catalog.lake.snapshots import Snapshot
    from catalog.records.tables import Job, Scan, Source, Staging


def of_source(source: "Source") -> dict[str, Any]:
    """A source."""
    from ingest.sources.recorded import data_set_of  # with the records' database

    return {
        "name": source.name,
        "uri": source.uri,
        "platform": source.platform,
        "cluster": source.cluster,
        "datasource": source.datasource,
        "site": source.site,
        "part_of": data_set_of(source),
        "options": SourceOptions.from_json(source.options).shown(),
    }


def of_scan(scan: "Scan", source: str) -> dict[str, Any]:
    """A scan; ``counts`` are those of scan_counts, with rates and, while it runs, eta_s."""
    from catalog.records.tables import now

    ended = scan.finished or now()
    return {
        "scan": scan.id,
        "source": source,
        "kind": scan.kind,
        "state": scan.state,
        "error": scan.error,
        "started": _time(scan.started),
        "finished": _time(scan.finished),
        "seconds": round((ended - scan.started).total_seconds(), 3),
        "counts": scan.counts,
    }


def of_staging(staging: "Staging", dataset: str) -> dict[str, Any]:
    """A staging of the dataset "name@version"; sizes in bytes."""
    return {
        "staging": staging.id,
        "dataset": dataset,
        "state": staging.state,
        "created": _time(staging.created),
        "cache": staging.cache,
        "manifest": staging.manifest,
        "files": staging.files,
        "files_copied": staging.files_copied,
        "bytes": staging.bytes,
        "bytes_copied": staging.bytes_copied,
    }


def of_snapshot(snapshot: "Snapshot") -> dict[str, Any]:
    """A snapshot of the catalog: when, by whom, what for, what it changed, how much there is."""
    commit = snapshot.commit
    return {
        "snapshot": commit.number,
        "time": _time(commit.time),
        "author": commit.author,
        "reason": commit.reason,
        "changed": list(commit.tables),
        "files": snapshot.files,
        "frames": snapshot.frames,
    }


def of_tag_change(change: "TagChange") -> dict[str, Any]:
    """A tag of a file before and after; times as ISO 8601."""
    before, after = (
        value.isoformat() if isinstance(value, datetime) else value
        for value in (change.before, change.after)
    )
    return {"fkey": change.fkey, "tag": change.tag, "before": before, "after": after}


def of_job(job: "Job") -> dict[str, Any]:
    """A job: state, what was asked for, metrics, paths, and the request that it runs."""
    seconds, settings = None, job.request.get("settings", {})
    if job.started is not None and job.finished is not None:
        seconds = round((job.finished - job.started).total_seconds(), 3)
    return {
        "name": job.name,
        "kind": job.kind,
        "backend": job.backend,
        "state": job.state,
        "waits": job.waits,
        "error": job.error,
        "attempt": job.request.get("attempt", 1),
        "dataset": job.dataset,
        "split": settings.get("split"),
        "settings": settings,
        "created": _time(job.created),
        "started": _time(job.started),
        "finished": _time(job.finished),
        "seconds": seconds,
        "metrics": job.metrics,
        "paths": job.paths,
        "request": job.request,
    }


def _time(time: datetime | None) -> str | None:
    """A record's time as ISO 8601 in UTC."""
    return None if time is None else time.isoformat(timespec="seconds") + "Z"
