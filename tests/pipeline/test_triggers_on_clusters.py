"""New objects in a bucket, a quiet time, and a job on a cluster."""

import subprocess
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from api.services.session import Session
from catalog.records import sources
from catalog.records.tables import Source
from catalog.values import now
from tests.api.servers import FRAMESIFT, environment
from tests.ingest.s3_server import S3Server, moto
from tests.ingest.watch.test_sqs import Queue
from tests.ingest.watch.watching import watching
from tests.pipeline.clusters import BACKENDS, cluster_of, traces
from tests.pipeline.homes import SAMPLE, copy_home, open_home

BUCKET = "drives-for-triggers"
BELOW = "camera_lidar_semantic"
QUIET_S = 4
FIRST, SECOND = "20260507_155109", "20260721_110506"
"""Scenes of the sample, of three frames each; the first has been in the bucket."""
COMMAND = "sh -c 'cut -f 1 {files} | xargs head -qc 4 > {job}/heads; env > {job}/env'"


def notified(server: S3Server) -> Queue:
    """A queue that the bucket tells of new objects; the bucket holds one scene."""
    server.new_bucket(BUCKET)
    queue = Queue(server, BUCKET)
    put(server, FIRST)
    classes = (SAMPLE / BELOW / "class_list.json").read_bytes()
    server.client().put_object(Bucket=BUCKET, Key=f"{BELOW}/class_list.json", Body=classes)
    of_new = {"QueueArn": queue.arn, "Events": ["s3:ObjectCreated:*"]}
    server.client().put_bucket_notification_configuration(
        Bucket=BUCKET, NotificationConfiguration={"QueueConfigurations": [of_new]}
    )
    return queue


def put(server: S3Server, scene: str) -> None:
    """Put a scene's files into the bucket."""
    server.put_folder(BUCKET, SAMPLE / BELOW / scene, f"{BELOW}/{scene}/")


def until(holds: Callable[[], object]) -> None:
    """Look twice a second: a look asks the records."""
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.5)


@pytest.mark.wide
@pytest.mark.parametrize("backend", BACKENDS)
def test_new_objects_and_a_quiet_time_begin_a_job(
    backend: str, catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run, with all new frames, staged by the home's machine; no key reaches the cluster."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    queue = notified(server)
    workspace = open_home(copy_home(catalogued, tmp_path))
    sources.add_source(workspace.records, Source(
        name="drive", uri=f"s3://{BUCKET}", platform="IBM COS", cluster="local", datasource=BUCKET,
        site="", options={"endpoint_url": server.endpoint},
    ))  # fmt: skip
    session = Session(workspace, is_command=True)

    def state() -> str:
        run = session.triggers.get("new").last_run
        return "" if run is None else run.state

    events = "--events", queue.url, "--relist", "0"
    with cluster_of(backend, tmp_path, workspace.home) as cluster:
        records = {"FRAMESIFT_RECORDS": str(workspace.home / "records" / "records.sqlite")}
        with watching(workspace.home, *events, source="drive", variables=records) as watched:
            watched.until_listed()
            session.triggers.add(
                "new", when=f"datasource='{BUCKET}'", quiet_s=QUIET_S,
                then=[{"kind": "run", "command": COMMAND, "backend": backend, "evict": True}],
            )  # fmt: skip
            env = environment(workspace.home, cluster)
            with subprocess.Popen([str(FRAMESIFT), "jobs", "daemon"], env=env) as daemon:
                put(server, SECOND)
                until(state)
                assert now() - session.last_commit() >= timedelta(seconds=QUIET_S)
                until(lambda: state() != "running")
                assert daemon.poll() is None
                daemon.terminate()
        (run,) = session.triggers.runs("new")
        assert (run.state, run.frames, run.error) == ("done", 6, "")
        job = session.jobs.get(run.jobs[0])
        assert [(task.name, task.backend, task.state) for task in job.tasks] == [
            ("stage", "local", "done"), ("prepare", "local", "done"), ("run", backend, "done"),
            ("evict", "local", "done"),
        ]  # fmt: skip
        output = Path(job.paths["output"])
        assert (output / "heads").read_bytes() == b"\x89PNG" * 6
        seen = (output / "env").read_text() + traces(cluster)
        assert "FRAMESIFT_JOB_FOLDER" in seen
        for key in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
            assert key not in seen
