"""/metrics, for Prometheus: of all processes of this server, and of the home that it serves."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fastapi import Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from api.http.dependencies import CurrentSession
from api.http.routes.server.cache_metrics import cache_metrics
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, Api
from api.server.metrics_folder import shared_folder
from api.services.session import Session

router = Router(api=Api.OTHER, tags=["health"])

_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The figures.",
        "content": {
            "text/plain": {
                "example": "# HELP framesift_requests_total Requests answered.\n"
                "# TYPE framesift_requests_total counter\n"
                'framesift_requests_total{method="GET",route="/v1/classes",status="200"} 3.0\n'
            }
        },
    }
}


@router.get(
    "/metrics", rule=READ_ALL_ROWS.but(work="metrics"), response_class=Response, responses=_ANSWER
)
def metrics(session: CurrentSession) -> Response:
    """Requests, queries, statements, caches, jobs, scans, stagings, in Prometheus' text format."""
    body = _figures(session)
    return Response(body, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _figures(session: Session) -> bytes:
    home = CollectorRegistry()
    home.register(_Home(session))
    folder = shared_folder()
    if folder is None:
        return generate_latest(REGISTRY) + generate_latest(home)
    MultiProcessCollector(home, folder)  # type: ignore[no-untyped-call]
    return generate_latest(home)


class _Home(Collector):
    """Metrics of the home, the same in every process."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def collect(self) -> Iterable[Metric]:
        """Figures out of the records, the cache and the folder of images."""
        yield from _jobs(self._session)
        yield from _scans(self._session)
        yield from cache_metrics(self._session.stagings.figures())
        yield GaugeMetricFamily(
            "framesift_image_cache_bytes",
            "Made images on disk.",
            sum(_sizes(self._session.workspace.images)),
        )

    def describe(self) -> Iterable[Metric]:
        """Nothing: to be registered it needs not be asked."""
        return ()


def _jobs(session: Session) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("framesift_jobs", "Jobs.", labels=("kind", "state"))
    for (kind, state), number in session.jobs.counts().items():
        gauge.add_metric((kind, state), number)
    yield gauge
    labels = ("user", "dataset", "kind")
    cores, gpus, waits = (
        GaugeMetricFamily(f"framesift_job_{what}_seconds", help_, labels=labels)
        for what, help_ in (
            ("core", "Cores times seconds, of ended attempts of jobs on record."),
            ("gpu", "GPUs times seconds, of ended attempts of jobs on record."),
            ("wait", "Seconds from submission to start, of ended attempts of jobs on record."),
        )
    )
    for values, used in session.jobs.usage_of_all().items():
        cores.add_metric(values, used.core_s)
        gpus.add_metric(values, used.gpu_s)
        waits.add_metric(values, used.wait_s)
    yield from (cores, gpus, waits)


def _scans(session: Session) -> Iterator[Metric]:
    rate = GaugeMetricFamily(
        "framesift_scan_files_per_second", "Files of running scans.", labels=("source",)
    )
    done = GaugeMetricFamily(
        "framesift_scan_files", "Files that running scans have listed.", labels=("source",)
    )
    for scan in session.scans.progress():
        rate.add_metric((scan.source,), scan.files_per_s)
        done.add_metric((scan.source,), scan.files)
    yield rate
    yield done


def _sizes(folder: Path) -> Iterator[int]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # nothing was made yet
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _sizes(Path(entry))
        else:
            try:
                yield entry.stat().st_size
            except OSError:  # removed meanwhile
                continue
