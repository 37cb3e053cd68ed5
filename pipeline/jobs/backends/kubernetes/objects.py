"""Objects that a job is: a conductor, an indexed Job for each stage, a Service for its ranks.

Source: the references of batch/v1 Job and v1 Service, Pod, at kubernetes.io; Kueue's page on Jobs.
"""

from typing import Any

from framesift_start import start
from pipeline.jobs.backends.kubernetes.job import KubernetesJob
from pipeline.jobs.backends.kubernetes.names import (
    CONDUCTOR,
    FOLDER,
    NAME,
    STAGE,
    labels_of,
    object_name,
)
from pipeline.jobs.backends.kubernetes.settings import RDMA, Volume
from pipeline.jobs.request import Stage

Object = dict[str, Any]
"""An object as the API has it, in JSON's types."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_CONDUCTOR = "pipeline.jobs.backends.kubernetes.conductor"
_KEPT_S = 86_400
"""For how long a job that ended can be looked at by kubectl [s]; its folder stays."""
_CONDUCTOR_CRASHES = 6


def conductor(job: KubernetesJob) -> Object:
    """The Job whose pod runs the stages in order, wherever it is started again."""
    folder = str(job.paths.folder)
    command = [job.settings.python, *start(_CONDUCTOR), job.name, folder]
    resources = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}
    pod = _pod(job, CONDUCTOR, job.settings.image, command, resources)
    labels = labels_of(job.paths.folder, job.name, CONDUCTOR)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(job, object_name(job.paths.folder, job.name), CONDUCTOR),
        "spec": {
            "backoffLimit": _CONDUCTOR_CRASHES,
            # A node that is emptied or gone is no crash of the conductor's.
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "Ignore",
                        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                    },
                ]
            },
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": _KEPT_S,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def stage_name(job: KubernetesJob, number: int, turn: int) -> str:
    """Name of a turn of a stage."""
    return object_name(job.paths.folder, job.name, str(number), *((f"t{turn}",) if turn else ()))


def stage_job(job: KubernetesJob, number: int, turn: int) -> Object:
    """The indexed Job of a stage: a pod for each command, or for so many of its ranks.

    A pod that fails, or that its node takes along, is not started again: whether the job goes on is
    for its attempts to say. Shards that need no other one fail for themselves.

    Args:
        job: The stage's.
        number: The stage's among those of the job.
        turn: How often its wall time ended before.
    """
    stage = job.request.stages[number]
    name, pods = stage_name(job, number, turn), job.pods(stage)
    completions = pods * len(stage.commands)
    labels = labels_of(job.paths.folder, job.name, STAGE)
    pod = program_pod(job, stage, stage_command(job, stage, turn))
    if pods > 1:
        pod["subdomain"] = name
    spec = {
        "completionMode": "Indexed",
        "completions": completions,
        "parallelism": min(completions, pods * job.request.parallel),
        # An index that waits for its turn would else wait for one that failed for itself.
        **({"backoffLimitPerIndex": 0} if stage.independent else {"backoffLimit": 0}),
        "podReplacementPolicy": "Failed",
        **({"suspend": True} if job.settings.queue else {}),
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": queued(job, _metadata(job, name, STAGE)),
        "spec": spec,
    }


def service(job: KubernetesJob, number: int, turn: int) -> Object:
    """The headless Service of a stage's pods, by which each has a name that others can look up."""
    name = stage_name(job, number, turn)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, name, STAGE),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": name},
        },
    }


def stage_command(job: KubernetesJob, stage: Stage, turn: int) -> list[str]:
    """What a pod of a stage runs."""
    return ["/bin/sh", str(job.notes / f"{stage.title}.sh"), str(turn)]


def queued(job: KubernetesJob, metadata: Object) -> Object:
    """Metadata by which Kueue lets an object begin, where it does."""
    if job.settings.queue:
        metadata["labels"] = {**metadata["labels"], QUEUE_LABEL: job.settings.queue}
    return metadata


def program_pod(job: KubernetesJob, stage: Stage, command: list[str]) -> Object:
    """A pod that runs programs of a stage."""
    asks, settings = job.request.resources, job.settings
    ranks = job.ranks_per_pod(stage)
    gpus = asks.gpus * ranks if stage.uses_gpus else 0
    requests = {
        **({"cpu": str(asks.cores * ranks)} if asks.cores else {}),
        **({"memory": f"{asks.memory_mb}M"} if asks.memory_mb else {}),
    }
    limits = {
        **({"memory": f"{asks.memory_mb}M"} if asks.memory_mb else {}),
        **({settings.gpu: str(gpus), **settings.extended} if gpus else {}),
    }
    pod = _pod(job, STAGE, job.image, command, _without_empty(requests=requests, limits=limits))
    container = pod["containers"][0]
    container["env"] = [
        {"name": "FRAMESIFT_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
            for name, (secret, key) in settings.secret_variables.items()
        ),
    ]
    if settings.shm_mb:
        memory = {"medium": "Memory", "sizeLimit": f"{settings.shm_mb}Mi"}
        pod["volumes"].append({"name": "shm", "emptyDir": memory})
        container["volumeMounts"].append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108
    if settings.nccl in RDMA and gpus:
        container["securityContext"]["capabilities"]["add"] = ["IPC_LOCK"]
    labels = settings.node_labels | dict(
        pair.split("=", 1) for pair in filter(None, asks.constraint.split(","))
    )
    if labels:
        pod["nodeSelector"] = labels
    if asks.nodes:
        term = {"key": "kubernetes.io/hostname", "operator": "In", "values": asks.nodes.split(",")}
        chosen = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        pod["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": chosen}
        }
    if settings.borne_taints:
        pod["tolerations"] = settings.borne_taints
    pod["terminationGracePeriodSeconds"] = settings.checkpoint_seconds
    if asks.wall_minutes:
        pod["activeDeadlineSeconds"] = asks.wall_minutes * 60
    return pod


def _pod(
    job: KubernetesJob, name: str, image: str, command: list[str], resources: Object
) -> Object:
    """A pod that OpenShift's restricted-v2 and Kubernetes' restricted profile let run."""
    settings = job.settings
    volumes, mounts = _volumes(job.volumes())
    ids = _without_zero(runAsUser=settings.uid, runAsGroup=settings.gid)
    container: Object = {
        "name": name,
        "image": image,
        "command": command,
        "workingDir": "/",
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }
    pod: Object = {
        "restartPolicy": "Never",
        "serviceAccountName": settings.service_account,
        # Programs have no business with the cluster.
        "automountServiceAccountToken": name == CONDUCTOR,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            **ids,
        },
        "containers": [container],
        "volumes": volumes,
    }
    if settings.pull_secrets:
        pod["imagePullSecrets"] = [{"name": secret} for secret in settings.pull_secrets]
    return pod


def _volumes(volumes: list[Volume]) -> tuple[list[Object], list[Object]]:
    """Volumes of a pod, each claim once, and their mounts."""
    claims = list(dict.fromkeys(volume.claim for volume in volumes))
    names = {claim: f"claim-{number}" for number, claim in enumerate(claims)}
    mounts = []
    for volume in volumes:
        mount: Object = {"name": names[volume.claim], "mountPath": volume.path}
        if volume.folder:
            mount["subPath"] = volume.folder
        if volume.read_only:
            mount["readOnly"] = True
        mounts.append(mount)
    of_claims = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        for claim, name in names.items()
    ]
    return of_claims, mounts


def _metadata(job: KubernetesJob, name: str, role: str) -> Object:
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": labels_of(job.paths.folder, job.name, role),
        "annotations": {FOLDER: str(job.paths.folder), NAME: job.name},
    }


def _without_empty(**values: Object) -> Object:
    return {name: value for name, value in values.items() if value}


def _without_zero(**values: int) -> Object:
    return {name: value for name, value in values.items() if value}
