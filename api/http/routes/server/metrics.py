"""/metrics, for Prometheus: of all processes of this server, and of the home that it serves."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from api.http.dependencies import CurrentSession
from api.http.routes.server.cache_metrics import cache_metrics
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, Api
from api.server.certificate import Certificate
from api.server.metrics_folder import shared_folder
from api.services.session import Session

router = Router(api=Api.OTHER, tags=["health"])

_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The figures.",
        "content": {
            "text/plain": {
                "schema": {"type": "string"},
                "example": "# HELP framesift_requests_total Requests by route (its template)...\n"
                "# TYPE framesift_requests_total counter\n"
                'framesift_requests_total{method="GET",route="/v1/classes",status="200"} 3.0\n',
            }
        },
    }
}


@router.get(
    "/metrics", rule=READ_ALL_ROWS.but(work="metrics"), response_class=Response, responses=_ANSWER
)
def metrics(session: CurrentSession, request: Request) -> Response:
    """Requests, queries, statements, caches, jobs, scans, stagings, in Prometheus' text format."""
    body = _figures(session, request.app.state.certificate)
    return Response(body, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _figures(session: Session, certificate: Certificate | None) -> bytes:
    home = CollectorRegistry()
    home.register(_Home(session, certificate))
    folder = shared_folder()
    if folder is None:
        return generate_latest(REGISTRY) + generate_latest(home)
    MultiProcessCollector(home, folder)  # type: ignore[no-untyped-call]
    return generate_latest(home)


class _Home(Collector):
    """Metrics of the home and of the certificate, the same in every process."""

    def __init__(self, session: Session, certificate: Certificate | None) -> None:
        self._session, self._certificate = session, certificate

    def collect(self) -> Iterable[Metric]:
        """Figures out of the records, the cache and the folder of images."""
        yield from _jobs(self._session)
        yield from _running_jobs(self._session)
        yield from _scans(self._session)
        yield from cache_metrics(self._session.stagings.figures())
        yield GaugeMetricFamily(
            "framesift_image_cache_bytes",
            "What made pictures take on disk.",
            sum(_sizes(self._session.workspace.images)),
        )
        yield from _free(self._session.workspace.home)
        yield from _backup(self._session.snapshots.last_backup())
        yield from _certificate(self._certificate)

    def describe(self) -> Iterable[Metric]:
        """Nothing: to be registered it needs not be asked."""
        return ()


def _jobs(session: Session) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("framesift_jobs", "Jobs by kind and state.", labels=("kind", "state"))
    for (kind, state), number in session.jobs.counts().items():
        gauge.add_metric((kind, state), number)
    yield gauge
    labels = ("user", "dataset", "kind")
    cores, gpus, waits = (
        GaugeMetricFamily(f"framesift_job_{what}_seconds", help_, labels=labels)
        for what, help_ in (
            ("core", "Cores times seconds that jobs on record used, by user, dataset and kind."),
            ("gpu", "GPUs times seconds that jobs on record used, likewise."),
            ("wait", "Seconds from submission to start of jobs on record, likewise."),
        )
    )
    for values, used in session.jobs.usage_of_all().items():
        cores.add_metric(values, used.core_s)
        gpus.add_metric(values, used.gpu_s)
        waits.add_metric(values, used.wait_s)
    yield from (cores, gpus, waits)


def _running_jobs(session: Session) -> Iterator[Metric]:
    """Gauges of each running job: its name is a label only as long as it runs."""
    labels = ("name", "kind")
    gauges = {
        figure: GaugeMetricFamily(f"framesift_job_{name}", help_, labels=labels)
        for figure, name, help_ in (
            (
                "loss",
                "loss",
                "Loss that running jobs last logged, by name and kind; of the newest 100.",
            ),
            ("miou", "miou", "Mean IoU that running jobs last logged, likewise."),
            (
                "images_per_s",
                "images_per_second",
                "Images per second that running jobs last logged, likewise.",
            ),
            ("step", "step", "Step that running jobs last logged, likewise."),
        )
    }
    hosts = GaugeMetricFamily(
        "framesift_job_host",
        "1 for each machine or pod of a running job, by name and host.",
        labels=("name", "host"),
    )
    ids = GaugeMetricFamily(
        "framesift_job_scheduler_id",
        "1 for each batch job of a running job, by name and hpc_job, the scheduler's number.",
        labels=("name", "hpc_job"),
    )
    for job in session.jobs.running():
        for figure, value in job.figures.items():
            gauges[figure].add_metric((job.name, job.kind), value)
        for host in job.hosts:
            hosts.add_metric((job.name, host), 1)
        for number in job.scheduler_ids:
            ids.add_metric((job.name, number), 1)
    yield from (*gauges.values(), hosts, ids)


def _backup(made: datetime | None) -> Iterator[Metric]:
    if made is not None:
        yield GaugeMetricFamily(
            "framesift_last_backup_timestamp_seconds",
            "When the state was read that the home's last backup holds, in seconds since 1970; "
            "absent before the first.",
            made.replace(tzinfo=UTC).timestamp(),
        )


def _scans(session: Session) -> Iterator[Metric]:
    labels = ("source", "kind")
    rate, files, seconds = (
        GaugeMetricFamily(f"framesift_scan_{what}", help_, labels=labels)
        for what, help_ in (
            ("files_per_second", "The rate of running scans, likewise."),
            ("files", "Files that running scans have listed, by source and kind (scan, watch)."),
            (
                "seconds",
                "How long running scans had run at their last report; it grows until they end.",
            ),
        )
    )
    for scan in session.scans.progress():
        values = (scan.source, scan.kind)
        rate.add_metric(values, scan.files_per_s)
        files.add_metric(values, scan.files)
        seconds.add_metric(values, scan.seconds)
    yield from (rate, files, seconds)


def _free(home: Path) -> Iterator[Metric]:
    with suppress(OSError):  # the disk does not answer
        free = shutil.disk_usage(home).free
        yield GaugeMetricFamily(
            "framesift_home_free_bytes", "What is free on the home's disk.", free
        )


def _certificate(certificate: Certificate | None) -> Iterator[Metric]:
    if certificate is not None and certificate.expires is not None:
        yield GaugeMetricFamily(
            "framesift_certificate_expiry_timestamp_seconds",
            "Until when the server's certificate is valid, in seconds since 1970; absent without "
            "TLS.",
            certificate.expires.timestamp(),
        )


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
