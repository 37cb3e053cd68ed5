"""Jobs of a Kubernetes or OpenShift cluster whose pods see the home's folders."""

import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, JobFailed
from catalog.storage.atomic_write import atomic_write
from pipeline.cache.lease import cache_of
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.job_folder import ask_to_end, begin_attempt, not_started
from pipeline.jobs.backends.kubernetes.api import Api, ClusterSilent, core_path, jobs_path, path_of
from pipeline.jobs.backends.kubernetes.cluster import cluster
from pipeline.jobs.backends.kubernetes.job import KubernetesJob, is_below, notes_of
from pipeline.jobs.backends.kubernetes.mpijob import mpi_job
from pipeline.jobs.backends.kubernetes.names import (
    ATTEMPT,
    CONDUCTOR,
    ROLE,
    attempt_label,
    object_name,
)
from pipeline.jobs.backends.kubernetes.notes import BEGAN, Plan, plan_file
from pipeline.jobs.backends.kubernetes.objects import Object, conductor, service, stage_job
from pipeline.jobs.backends.kubernetes.script import script
from pipeline.jobs.backends.kubernetes.settings import NAME, kubernetes_settings, labels
from pipeline.jobs.backends.kubernetes.waits import is_active, wait_of
from pipeline.jobs.backends.kubernetes.yaml_text import yaml_text
from pipeline.jobs.environment import submitted_variables
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, read_json, write_json
from pipeline.jobs.resources import Resources

_LOOK_S = 15.0
"""For how long a look at jobs asks a cluster that does not answer [s]."""


class KubernetesBackend:
    """Submits a conductor for each job, which runs its stages as Jobs of the cluster."""

    name = NAME
    stages_beside = False

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Allow what settings allow, and what pods would see."""
        settings = kubernetes_settings(queue.backends, resources)
        if resources.ranks > settings.most_ranks:
            raise InvalidInput(
                f"workers {resources.ranks:,}: a job on {NAME} may have at most "
                f"{settings.most_ranks:,}; ask for fewer, or have most_ranks of [{NAME}] say more"
            )
        keep = settings.checkpoint_seconds
        if resources.wall_minutes and resources.wall_minutes * 60 <= keep:
            raise InvalidInput(
                f"wall minutes {resources.wall_minutes}: expected more than the {keep} s that "
                f"programs have for their checkpoint (checkpoint_seconds of [{NAME}])"
            )
        labels("constraint", tuple(filter(None, resources.constraint.split(","))))
        job = KubernetesJob(
            JobRequest("", "", (), resources=resources), JobPaths(queue.folder), "", settings, ""
        )
        job.volumes()
        writable = [volume.path for volume in settings.folders if not volume.read_only]
        if not any(is_below(str(queue.folder), path) for path in writable):
            raise InvalidInput(
                f"backend {NAME}: pods would not see {queue.folder}, where jobs' folders lie; name "
                f"its claim in volumes of [{NAME}] in backends.toml, such as volumes = "
                f'["{queue.folder.parent}=CLAIM"]'
            )
        missing = set(resources.environment) - set(settings.secret_variables)
        plain = submitted_variables(dict.fromkeys(missing, ""), queue.inherits)
        if secret := sorted(missing - plain.keys()):
            raise InvalidInput(
                f"environment {secret[0]}: no key goes into a pod's script; make a secret of the "
                f"namespace, and name it in secrets of [{NAME}] in backends.toml: secrets = "
                f'["{secret[0]}=SECRET:KEY"]'
            )

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Keep plan and scripts in the job's folder, and create the conductor, or meet it."""
        try:
            job, api = self._job(request, paths, queue, name)
        except InvalidInput as error:
            raise JobFailed(request.name, f"job {request.name}: {error}") from error
        with api:
            try:
                if api.get(path_of(conductor(job), alone=True)) is not None:
                    return name
                self._write(job, queue)
                api.create(path_of(conductor(job)), conductor(job))
            except ClusterSilent as error:
                if not _is_withdrawn(job):
                    return name  # the cluster had it, and only its answer was lost
                raise JobFailed(request.name, f"job {request.name}: {error}") from error
            except OSError as error:
                raise not_started(paths, error) from error
        return name

    def find(self, name: str, paths: JobPaths) -> str | None:
        """The attempt, by its own word, or else by its conductor."""
        plan = Plan.read(paths, name)
        if plan is None:
            return None
        if (notes_of(paths, name) / BEGAN).exists():
            return name
        try:
            with Api(_cluster_of(plan)) as api:
                row = api.get(jobs_path(plan.namespace, object_name(paths.folder, name)))
                return name if row else None
        except (ClusterSilent, InvalidInput) as error:
            raise JobFailed(name, f"{name}: {error}") from error

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """The last words of conductors, and by one list of each namespace's whether they live."""
        statuses: dict[str, JobStatus] = {}
        unended: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for name, paths in handles.items():
            word, plan = _last_word(paths, name), Plan.read(paths, name)
            if word.get("state") in FINISHED:
                statuses[name] = _status(word)
            elif plan is None:
                reason = f"{plan_file(paths, name)}: is not there: nobody knows what was submitted"
                statuses[name] = JobStatus("failed", reason)
            else:
                of = plan.settings
                unended[(of.kubeconfig, of.context, plan.namespace)].append(name)
        for (kubeconfig, context, namespace), names in unended.items():
            known = {name: handles[name] for name in names}
            try:
                with Api(cluster(kubeconfig, context), _LOOK_S) as api:
                    statuses |= _looked_at(api, namespace, known)
            except (ClusterSilent, InvalidInput) as error:
                for name, paths in known.items():
                    word = _last_word(paths, name)
                    statuses[name] = replace(_status(word), state="unknown", error=str(error))
        return {name: statuses[name] for name in handles}

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Have the conductor end the job; one that has not begun is deleted."""
        ask_to_end(paths)
        plan = Plan.read(paths, handle)
        if plan is None or (notes_of(paths, handle) / BEGAN).exists():
            return  # a conductor that begins now sees the file
        try:
            with Api(_cluster_of(plan)) as api:
                api.delete(jobs_path(plan.namespace, object_name(paths.folder, handle)))
        except (ClusterSilent, InvalidInput) as error:
            raise JobFailed(paths.folder.name, f"job {paths.folder.name}: {error}") from error

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """The objects as YAML, and the script of each stage's pods."""
        settings = kubernetes_settings(queue.backends, request.resources)
        namespace = settings.namespace or _namespace(settings.kubeconfig, settings.context)
        job = KubernetesJob(request, paths, name, settings, namespace)
        variables = _variables(request, queue)
        lines = [yaml_text(conductor(job))]
        for number, stage in enumerate(request.stages):
            lines += [yaml_text(thing) for thing in stage_objects(job, number)]
            text = script(job, stage, variables)
            lines.append("".join(f"# {line}\n" for line in text.splitlines()))
        return "---\n".join(lines)

    def _job(
        self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str
    ) -> tuple[KubernetesJob, Api]:
        """The job, and the API of its cluster.

        Raises:
            InvalidInput: Pods would not see what it reads, or there is no cluster.
        """
        settings = kubernetes_settings(queue.backends, request.resources)
        of_user = cluster(settings.kubeconfig, settings.context)
        job = KubernetesJob(request, paths, name, settings, settings.namespace or of_user.namespace)
        seen = [volume.path for volume in settings.folders]
        for manifest in map(Path, request.reads):
            for folder in filter(None, (manifest, cache_of(manifest))):
                if not any(is_below(str(folder), path) for path in seen):
                    raise InvalidInput(
                        f"pods would not see {folder}; name its claim in volumes of [{NAME}] in "
                        "backends.toml, such as PATH=CLAIM:FOLDER:ro"
                    )
        return job, Api(of_user)

    def _write(self, job: KubernetesJob, queue: JobQueue) -> None:
        """Write what conductor and pods read, the plan last.

        Raises:
            OSError, StorageError: The folder cannot be written.
        """
        paths, request = job.paths, job.request
        begin_attempt(paths, request, fsync=True)
        job.notes.mkdir(parents=True, exist_ok=True)
        variables = _variables(request, queue)
        for stage in request.stages:
            atomic_write(job.notes / f"{stage.title}.sh", script(job, stage, variables))
        write_json(paths.status, {"state": "pending", "name": job.name})
        Plan(job.namespace, job.settings).write(paths, job.name)


def stage_objects(job: KubernetesJob, number: int) -> list[Object]:
    """Objects of the first turn of a stage, in the order in which they are created."""
    stage = job.request.stages[number]
    if job.is_mpi(stage):
        return [mpi_job(job, number, 0)]
    of_ranks = [service(job, number, 0)] if job.pods(stage) > 1 else []
    return [*of_ranks, stage_job(job, number, 0)]


def _variables(request: JobRequest, queue: JobQueue) -> dict[str, str]:
    """Variables of the submitter that programs get; secrets come by reference."""
    if request.submitted is not None:
        return dict(request.submitted)
    return submitted_variables(os.environ, queue.inherits)


def _namespace(kubeconfig: str, context: str) -> str:
    try:
        return cluster(kubeconfig, context).namespace
    except InvalidInput:
        return "default"


def _cluster_of(plan: Plan) -> Any:
    return cluster(plan.settings.kubeconfig, plan.settings.context)


def _is_withdrawn(job: KubernetesJob) -> bool:
    """Have a conductor that may come nevertheless find nothing to do; False where it has begun."""
    plan = Plan(job.namespace, job.settings)
    plan_file(job.paths, job.name).unlink(missing_ok=True)
    if not (job.notes / BEGAN).exists():
        return True
    plan.write(job.paths, job.name)
    return False


def _last_word(paths: JobPaths, name: str) -> dict[str, Any]:
    """What the attempt's conductor said last; empty for nothing."""
    document = read_json(paths.status)
    return document if document.get("name") == name else {}


def _status(word: Mapping[str, Any]) -> JobStatus:
    state = word.get("state", "pending")
    return JobStatus(
        "queued" if state == "pending" else state,
        word.get("error", ""),
        _time(word, "started"),
        _time(word, "finished"),
        word.get("waits", ""),
        is_lost=bool(word.get("lost", False)),
    )


def _looked_at(api: Api, namespace: str, jobs: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
    """Where jobs stand that had not ended.

    Raises:
        ClusterSilent: The cluster does not say.
    """
    listed = api.list(jobs_path(namespace), labelSelector=f"{ROLE}={CONDUCTOR}")
    conductors = {row["metadata"]["name"]: row for row in listed}
    statuses = {}
    for name, paths in jobs.items():
        word = _last_word(paths, name)  # read after the list: a last word is not missed
        row = conductors.get(object_name(paths.folder, name))
        if word.get("state") in FINISHED:
            statuses[name] = _status(word)
        elif row is None or _has_failed(row):
            statuses[name] = _without_conductor(api, namespace, name, paths, row)
        elif "conductor" in word:
            statuses[name] = _status(word)
        else:
            pods = _pods(api, namespace, paths, name)
            events = partial(api.list, core_path(namespace, "events"))
            wait = wait_of(row, pods, events(fieldSelector="type=Warning"))
            statuses[name] = JobStatus("queued", waits=wait.reason if wait else "")
    return statuses


def _without_conductor(
    api: Api, namespace: str, name: str, paths: JobPaths, row: Mapping[str, Any] | None
) -> JobStatus:
    """Where a job stands whose conductor is no more: ended, as soon as no pod of it runs."""
    word = _last_word(paths, name)
    active = [pod for pod in _pods(api, namespace, paths, name) if is_active(pod)]
    status = _status(word)
    if active:
        waits = f"for the end of pod {active[0]['metadata']['name']}"
        return replace(status, waits=waits)
    word = _last_word(paths, name)
    if word.get("state") in FINISHED:
        return _status(word)
    if paths.cancel.exists():
        return JobStatus("cancelled", "cancelled", status.started)
    conductor_name = object_name(paths.folder, name)
    error = f"Job {conductor_name} of namespace {namespace} was deleted by hand, or never created"
    if row is not None:
        error = (
            f"the conductor, Job {conductor_name} of namespace {namespace}, ended without a word; "
            f"see kubectl logs -n {namespace} job/{conductor_name}"
        )
    return JobStatus("failed", error, status.started, is_lost=True)


def _pods(api: Api, namespace: str, paths: JobPaths, name: str) -> list[dict[str, Any]]:
    selector = f"{ATTEMPT}={attempt_label(paths.folder, name)}"
    return api.list(core_path(namespace, "pods"), labelSelector=selector)


def _has_failed(job: Mapping[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(row.get("type") == "Failed" and row.get("status") == "True" for row in conditions)


def _time(word: Mapping[str, Any], key: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(word[key]) if word.get(key) else None
    return None
