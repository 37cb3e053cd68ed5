"""A training's ranks as an MPIJob of Kubeflow's MPI operator, for houses that have it.

The operator starts the launcher's mpirun in workers by ssh (v2beta1: images need sshd) or by
kubectl (v1alpha2). Everything else of a job is as with kind = "job".

Source: pkg/apis/kubeflow/v2beta1/types.go of kubeflow/mpi-operator 0.8.
"""

from typing import Any

from pipeline.jobs.backends.kubernetes.job import KubernetesJob
from pipeline.jobs.backends.kubernetes.names import FOLDER, NAME, STAGE, labels_of
from pipeline.jobs.backends.kubernetes.objects import (
    Object,
    program_pod,
    queued,
    stage_command,
    stage_name,
)

_SSH_OF_OTHERS = "/home/mpiuser/.ssh"
"""Folder of keys in images of the operator's own kind, whose user is not root."""


def mpi_job(job: KubernetesJob, number: int, turn: int) -> Object:
    """The MPIJob of a stage's only command.

    A worker pod has as many slots as ranks; the launcher, without GPUs, writes log and notes.
    """
    stage = job.request.stages[number]
    worker = program_pod(job, stage, [])
    launcher = program_pod(job, stage, stage_command(job, stage, turn))
    del worker["containers"][0]["command"]  # the operator's: sshd, or a long sleep
    launcher["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    for pod in (worker, launcher):
        del pod["restartPolicy"]  # a replica's, not its pod's
    if job.settings.mpi_version == "v1alpha2":  # whose launcher asks the cluster, as the operator
        del launcher["automountServiceAccountToken"], launcher["serviceAccountName"]
    labels = {"labels": labels_of(job.paths.folder, job.name, STAGE)}
    replicas = {
        "Launcher": _replica(1, launcher, labels),
        "Worker": _replica(job.pods(stage), worker, labels),
    }
    spec: dict[str, Any] = {"slotsPerWorker": job.ranks_per_pod(stage)}
    policy: dict[str, Any] = {"cleanPodPolicy": "All", "backoffLimit": 0}
    if job.settings.mpi_version == "v1alpha2":
        spec |= policy
    else:
        policy |= {"suspend": True} if job.settings.queue else {}
        spec |= {"runPolicy": policy, "sshAuthMountPath": _SSH_OF_OTHERS}
    metadata = {
        "name": stage_name(job, number, turn),
        "namespace": job.namespace,
        **labels,
        "annotations": {FOLDER: str(job.paths.folder), NAME: job.name},
    }
    return {
        "apiVersion": f"kubeflow.org/{job.settings.mpi_version}",
        "kind": "MPIJob",
        "metadata": queued(job, metadata),
        "spec": {**spec, "mpiReplicaSpecs": replicas},
    }


def _replica(number: int, pod: Object, labels: Object) -> Object:
    return {
        "replicas": number,
        "restartPolicy": "Never",
        "template": {"metadata": labels, "spec": pod},
    }
