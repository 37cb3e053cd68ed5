"""Runs one job of the backend kubernetes: each stage as a Job of the cluster, one after the other.

The program of a conductor's pod, started with the attempt's name and the job's folder. All that it
does it could do again: names of objects are fixed, and what is there already is followed. So the
cluster may end it at any time, and start it elsewhere.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.errors import StorageError
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.kubernetes.api import (
    Api,
    ClusterSilent,
    core_path,
    jobs_path,
    path_of,
)
from pipeline.jobs.backends.kubernetes.cluster import of_pod
from pipeline.jobs.backends.kubernetes.ended import why_ended
from pipeline.jobs.backends.kubernetes.mpijob import mpi_job
from pipeline.jobs.backends.kubernetes.names import (
    ATTEMPT,
    JOB,
    ROLE,
    STAGE,
    attempt_label,
    hashed,
    object_name,
)
from pipeline.jobs.backends.kubernetes.notes import BEGAN, Plan, notes_of_stage
from pipeline.jobs.backends.kubernetes.objects import Object, service, stage_job
from pipeline.jobs.backends.kubernetes.waits import Wait, is_active, wait_of
from pipeline.jobs.backends.local_runner import Runner
from pipeline.jobs.backends.turn import locked
from pipeline.jobs.queue import Slots
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json, write_json

_POLL_S, _LONGEST_POLL_S = 0.5, 10.0
"""Between two looks at a stage [s]; longer and longer while nothing changes."""
_BEAT_S = 0.1
_MISTAKE_S = 120.0
"""For how long a pod may not begin for a reason that stays [s]: an image may be on its way."""
_PATIENCE_S = 10.0
"""For one question; then what the job waits for is said, and it is asked again [s]."""
_QUOTA = "exceeded quota"


class Conductor(Runner):
    """A job under way in a cluster."""

    def __init__(self, name: str, request: JobRequest, paths: JobPaths, plan: Plan, api: Api):
        super().__init__(name, request, paths, Slots(paths.folder, 1), ())
        self.job, self.api = plan.job(request, paths, name), api
        self.number = -1
        self.status: dict[str, object] = {}
        self.owner: list[Object] = []
        self.last: Mapping[str, object] = {}

    def first_status(self) -> dict[str, object]:
        """The last word of this attempt, where another conductor of it ran before."""
        earlier = read_json(self.paths.status)
        if earlier.get("name") != self.name or earlier.get("state") in FINISHED:
            earlier = {"state": "pending", "name": self.name}
        keys = [key for key in ("state", "name", "started") if key in earlier]
        return {"conductor": socket.gethostname(), **{key: str(earlier[key]) for key in keys}}

    def begin(self, status: dict[str, object]) -> str:
        """Wait for the end of what earlier attempts left, and lease what the job reads."""
        self.status = status
        try:
            while (alone := locked(self.paths.lock)) is None and not self.cancelled:
                self.tell("queued", "for the end of its last attempt's conductor")
            if alone is not None:
                self.held = (alone,)
            self.wait_for_pods(f"{JOB}={hashed(str(self.paths.folder))},{ATTEMPT}!={self.attempt}")
            if self.cancelled:
                self.remove_stages()
            else:
                self.take_leases()
        except OSError as problem:
            return f"waiting for its turn: {problem.filename}: {problem.strerror}"
        except StorageError as problem:
            return str(problem)
        return ""

    @property
    def attempt(self) -> str:
        """The attempt, as objects are labelled."""
        return attempt_label(self.paths.folder, self.name)

    def run_stage(self, stage: Stage) -> str:
        """Why the stage failed; empty when all its commands succeeded, or it is to end."""
        self.number += 1
        self.was_killed = False
        file = self.job.notes / f"{self.number}.turn.json"
        while not self.cancelled:
            if all(note.code == 0 for note in notes_of_stage(self.job, stage)):
                return ""
            turn = int(read_json(file).get("turn", 0))
            error, goes_on = self.run_turn(stage, turn, file)
            if not goes_on or turn >= self.job.settings.most_requeues:
                return error
            write_json(file, {"turn": turn + 1}, fsync=True)
        return ""

    def run_turn(self, stage: Stage, turn: int, file: Path) -> tuple[str, bool]:
        """Why a turn of the stage ended, and whether only its wall time did.

        Args:
            stage: The stage.
            turn: How often its wall time ended before.
            file: Says whether the turn's Job was created, which so is not created once more.
        """
        is_mpi = self.job.is_mpi(stage)
        thing = (mpi_job if is_mpi else stage_job)(self.job, self.number, turn)
        if not read_json(file).get("created"):
            things = [thing]
            if not is_mpi and self.job.pods(stage) > 1:
                things.insert(0, service(self.job, self.number, turn))
            for each in things:
                if (refused := self.create(each)) or self.cancelled:
                    self.remove(thing)
                    return refused, False
            write_json(file, {"turn": turn, "created": True}, fsync=True)
        outcome = self.follow(stage, thing)
        self.wait_for_pods(f"{ATTEMPT}={self.attempt},{ROLE}={STAGE}")
        self.take_start(stage)
        if self.cancelled:
            return "", False
        # Pods have said their last word.
        ended = why_ended(self.job, stage, outcome.job, outcome.pods)
        self.was_killed = ended.is_lost and not outcome.mistake
        return outcome.mistake or ended.reason, ended.goes_on and not outcome.mistake

    def create(self, thing: Object) -> str:
        """Create an object, or meet it; why that is refused, else empty."""
        while not self.cancelled:
            try:
                self.owner = self.owner or self.own_job()
                metadata = {**thing["metadata"], "ownerReferences": self.owner}
                self.api.create(path_of(thing), {**thing, "metadata": metadata})
            except ClusterSilent as problem:
                if not problem.may_pass and _QUOTA not in str(problem):
                    return str(problem)
                self.tell(self.state, f"for Kubernetes: {problem}")
            else:
                break
        return ""

    def own_job(self) -> list[Object]:
        """References to the conductor's own Job, with which all others are deleted.

        Raises:
            ClusterSilent: The cluster does not say.
        """
        name = object_name(self.paths.folder, self.name)
        own = self.api.get(jobs_path(self.job.namespace, name))
        if own is None:
            raise ClusterSilent(f"Job {name} of this pod was deleted by hand")
        uid = own["metadata"]["uid"]
        return [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}]

    def follow(self, stage: Stage, thing: Object) -> "_Outcome":
        """Look at a Job until it has ended, is gone, cannot begin, or is to end."""
        path = path_of(thing, alone=True)
        name = thing["metadata"]["name"]
        mistake_since_s: float | None = None
        pause_s, seen = _POLL_S, None
        while True:
            pods: list[Object] = []
            try:
                job = self.api.get(path)
                pods = self.pods(f"{ATTEMPT}={self.attempt},{ROLE}={STAGE}", name)
                if self.cancelled or job is None:
                    self.remove(thing)
                    return _Outcome(job, pods)
                if has_ended(job):
                    return _Outcome(job, pods)
                wait = self.waits_of_job(job, pods)
            except ClusterSilent as problem:
                if not problem.may_pass:
                    return _Outcome({}, [], str(problem))
                wait, job = Wait(f"for Kubernetes: {problem}"), {}
            if wait is None or not wait.is_mistake:
                mistake_since_s = None
            else:
                mistake_since_s = mistake_since_s or time.monotonic()
                if time.monotonic() - mistake_since_s > _MISTAKE_S:
                    self.remove(thing)
                    return _Outcome(job, pods, wait.reason)
            looks = wait, [pod.get("status", {}).get("phase") for pod in pods]
            pause_s = min(1.5 * pause_s, _LONGEST_POLL_S) if looks == seen else _POLL_S
            seen = looks
            self.tell_stage(stage, job, wait, pause_s)

    def waits_of_job(self, job: Object, pods: list[Object]) -> Wait | None:
        """What a Job's pods wait for; events are asked for only where they do."""
        wait = wait_of(job, pods, ())
        if wait is None or wait.is_mistake:
            return wait
        events = core_path(self.job.namespace, "events")
        return wait_of(job, pods, self.api.list(events, fieldSelector="type=Warning"))

    def tell_stage(self, stage: Stage, job: Object, wait: Wait | None, pause_s: float) -> None:
        """Say where a stage stands, and wait for the next look."""
        self.take_start(stage)
        is_suspended = wait is not None and _is_suspended(job)
        if is_suspended and not job.get("status", {}).get("active"):
            # A turn that was broken off left files by which its ranks met.
            for leftover in self.job.notes.glob("ranks-*"):
                leftover.unlink(missing_ok=True)
        runs = "started" in self.status and not is_suspended
        self.tell("running" if runs else "queued", wait.reason if wait else "", pause_s)

    def take_start(self, stage: Stage) -> None:
        """Have the job begin with its first program."""
        times = [note.started for note in notes_of_stage(self.job, stage) if note.started]
        if times and "started" not in self.status:
            self.status["started"] = min(times).isoformat(timespec="milliseconds")

    @property
    def state(self) -> str:
        """Where the job stands while it waits for the cluster."""
        return "running" if "started" in self.status else "queued"

    def tell(self, state: str, waits: str, pause_s: float = 1.0) -> None:
        """Have status.json say how it goes, where that is new; wait a while, or for a cancel."""
        self.status["state"] = state
        words = {**self.status, "waits": waits}
        if words != self.last:
            self.last = words
            self.say(words)
        until_s, was_cancelled = time.monotonic() + pause_s, self.cancelled
        while time.monotonic() < until_s and self.cancelled == was_cancelled:
            for lease in self.leases:
                lease.beat()
            time.sleep(_BEAT_S)

    def pods(self, selector: str, job: str = "") -> list[Object]:
        """Pods of this job.

        Args:
            selector: Their labels.
            job: Name of their Job; empty for any.

        Raises:
            ClusterSilent: The cluster does not say.
        """
        pods = self.api.list(core_path(self.job.namespace, "pods"), labelSelector=selector)
        return [pod for pod in pods if not job or pod["metadata"]["name"].startswith(f"{job}-")]

    def remove(self, thing: Object) -> None:
        """Delete a Job; its pods have time to keep what they have."""
        while True:
            try:
                self.api.delete(path_of(thing, alone=True))
            except ClusterSilent as problem:
                if not problem.may_pass:
                    sys.stderr.write(f"{problem}\n")
                    return
                self.tell(self.state, f"for Kubernetes: {problem}")
            else:
                return

    def remove_stages(self) -> None:
        """Delete what an earlier conductor of this attempt created."""
        turns = [
            (number, int(read_json(self.job.notes / f"{number}.turn.json").get("turn", 0)))
            for number in range(len(self.request.stages))
        ]
        for number, turn in turns:
            is_mpi = self.job.is_mpi(self.request.stages[number])
            self.remove((mpi_job if is_mpi else stage_job)(self.job, number, turn))
        self.wait_for_pods(f"{ATTEMPT}={self.attempt},{ROLE}={STAGE}")

    def wait_for_pods(self, selector: str) -> None:
        """Wait until no pod runs any more: nothing else may begin beside one."""
        while True:
            try:
                active = [pod for pod in self.pods(selector) if is_active(pod)]
            except ClusterSilent as problem:
                self.tell(self.state, f"for Kubernetes: {problem}")
                continue
            if not active:
                return
            self.tell(self.state, _of_end(active[0]))


class _Outcome:
    """How a Job was left."""

    def __init__(self, job: Object | None, pods: list[Object], mistake: str = "") -> None:
        self.job = job
        """The Job; None where it was deleted by hand."""
        self.pods = pods
        """Its pods."""
        self.mistake = mistake
        """Why it cannot begin; empty where it could."""


def has_ended(job: Mapping[str, Any]) -> bool:
    """Return whether a Job, or MPIJob, has succeeded or failed."""
    ends = ("Complete", "Failed", "Succeeded")
    return any(
        condition.get("type") in ends and condition.get("status") == "True"
        for condition in job.get("status", {}).get("conditions") or ()
    )


def _is_suspended(job: Mapping[str, Any]) -> bool:
    spec = job.get("spec", {})
    return bool(spec.get("suspend") or spec.get("runPolicy", {}).get("suspend"))


def _of_end(pod: Mapping[str, Any]) -> str:
    node = pod.get("spec", {}).get("nodeName", "")
    where = f" on node {node}" if node else ""
    hint = f"; where {node} is gone for good: kubectl delete node {node}" if node else ""
    return f"for the end of pod {pod['metadata']['name']}{where}{hint}"


def main(name: str, folder: Path) -> int:
    """Run the attempt; 0 once its last word is written, or where it was never submitted."""
    paths = JobPaths(folder)
    notes = paths.folder / "kubernetes" / name
    try:
        (notes / BEGAN).touch()
    except OSError as error:
        sys.stderr.write(
            f"error: {notes}: {error.strerror}: see volumes and uid of [kubernetes] in "
            "backends.toml\n"
        )
        return 1
    plan = Plan.read(paths, name)
    last = read_json(paths.status)
    if plan is None or (last.get("name") == name and last.get("state") in FINISHED):
        return 0
    # Asked to end, it is to go on elsewhere: the job's own end is the file `cancel`.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    request = JobRequest.from_json(read_json(paths.request))
    with Api(of_pod(os.environ), _PATIENCE_S) as api:
        Conductor(name, request, paths, plan, api).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
