"""The measurements of a job so far, by the files in its folder."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pipeline.jobs.job_staging import staging_metrics
from pipeline.jobs.program.metrics import program_metrics
from pipeline.jobs.request import JobPaths, read_json

_MOST_METRICS, _MOST_CHARACTERS = 1_000, 4_096


def job_metrics(kind: str, paths: JobPaths, before: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of a job of a kind, with the progress of the staging beside it.

    Args:
        kind: Of the job.
        paths: Its files.
        before: What was known before, which stays until its programs write some.
    """
    own = _bounded(_own_metrics(kind, paths)) or before
    return {**own, **staging_metrics(read_json(paths.staging))}


def _own_metrics(kind: str, paths: JobPaths) -> dict[str, Any]:
    if kind == "train":
        return read_json(paths.model / "metrics.json")
    if kind in ("validate", "predict"):
        return read_json(paths.report / "metrics.json")
    if kind in ("preflight", "scaling"):  # with tables and warnings
        return read_json(paths.result) or read_json(paths.progress)
    if kind == "run":
        return {**program_metrics(paths.folder), **command_metrics(paths)}
    return command_metrics(paths)


def command_metrics(paths: JobPaths) -> dict[str, Any]:
    """The result of a job's command, lists left out; its progress until then; empty before."""
    document = read_json(paths.result) or read_json(paths.progress)
    return {key: value for key, value in document.items() if not isinstance(value, list)}


def _bounded(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The same without what a record should not hold, which every list of jobs reads.

    The first thousand, long texts cut; a program's files keep the rest.
    """
    return {
        name[:_MOST_CHARACTERS]: value[:_MOST_CHARACTERS] if isinstance(value, str) else value
        for name, value in islice(metrics.items(), _MOST_METRICS)
    }
