"""What an administrator applies once, so that a namespace takes jobs: no right that is not used.

Source: the redbook's SecurityContextConstraints "scc-for-mpi" (restricted, with IPC_LOCK);
kubernetes.io on RBAC and persistent volumes.
"""

from collections.abc import Sequence
from typing import Any

from catalog.errors import InvalidInput
from pipeline.jobs.backends.kubernetes.objects import Object
from pipeline.jobs.backends.kubernetes.settings import RDMA, KubernetesSettings

_LABELS = {"app.kubernetes.io/managed-by": "framesift"}


_SCALE = "spectrumscale.csi.ibm.com"
"""Driver of IBM Storage Scale, formerly Spectrum Scale."""
_SIZE = "1Ti"
"""Of a volume and its claim: no file system of these kinds is limited by it."""


def rendered(
    settings: KubernetesSettings, namespace: str, storage: Sequence[str] = ()
) -> list[Object]:
    """Namespace, service account, role and binding, and what claims and RDMA need.

    Args:
        settings: Of the backend.
        namespace: Of jobs.
        storage: "CLAIM=nfs:SERVER:/PATH", "CLAIM=scale:HANDLE" or "CLAIM=csi:DRIVER:HANDLE" each:
            volumes that do not exist yet.

    Raises:
        InvalidInput: Storage is none of these, or of a claim that no volume of the settings names.
    """
    account = settings.service_account
    things: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": _LABELS},
        },
        _of("v1", "ServiceAccount", account, namespace),
        {
            **_of("rbac.authorization.k8s.io/v1", "Role", account, namespace),
            "rules": rules(settings),
        },
        {
            **_of("rbac.authorization.k8s.io/v1", "RoleBinding", account, namespace),
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": account,
            },
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]
    if settings.nccl in RDMA:
        things += _rdma(account, namespace)
    for text in storage:
        things += _volume(settings, namespace, text)
    return things


def rules(settings: KubernetesSettings) -> list[Object]:
    """What conductors and submitters ask of the API."""
    asked: list[tuple[str, str, list[str]]] = [
        ("batch", "jobs", ["create", "get", "list", "delete"]),
        ("", "services", ["create"]),
        ("", "pods", ["list"]),
        ("", "events", ["list"]),
    ]
    if settings.kind == "mpijob":
        asked.append(("kubeflow.org", "mpijobs", ["create", "get", "delete"]))
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": verbs}
        for group, resource, verbs in asked
    ]


def _rdma(account: str, namespace: str) -> list[Object]:
    """OpenShift's restricted constraints, with the capability to lock memory."""
    name = f"framesift-rdma-{namespace}"
    user = f"system:serviceaccount:{namespace}:{account}"
    constraints: dict[str, Any] = {
        "apiVersion": "security.openshift.io/v1",
        "kind": "SecurityContextConstraints",
        "metadata": {
            "name": name,
            "labels": _LABELS,
            "annotations": {"kubernetes.io/description": "restricted-v2, adds IPC_LOCK"},
        },
        "allowHostDirVolumePlugin": False,
        "allowHostIPC": False,
        "allowHostNetwork": False,
        "allowHostPID": False,
        "allowHostPorts": False,
        "allowPrivilegeEscalation": False,
        "allowPrivilegedContainer": False,
        "allowedCapabilities": ["IPC_LOCK"],
        "defaultAddCapabilities": None,
        "requiredDropCapabilities": ["ALL"],
        "readOnlyRootFilesystem": False,
        "priority": None,
        "runAsUser": {"type": "MustRunAsRange"},
        "seLinuxContext": {"type": "MustRunAs"},
        "fsGroup": {"type": "MustRunAs"},
        "supplementalGroups": {"type": "RunAsAny"},
        "seccompProfiles": ["runtime/default"],
        "groups": [],
        "users": [user],
        "volumes": ["configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected",
                    "secret"],
    }  # fmt: skip
    return [constraints]


def _volume(settings: KubernetesSettings, namespace: str, text: str) -> list[Object]:
    """A volume whose files are there already, and the one claim that may have it."""
    claim, _, source = text.partition("=")
    kind, _, place = source.partition(":")
    known = list(dict.fromkeys(volume.claim for volume in settings.folders))
    if claim not in known:
        names = ", ".join(known) or "none"
        raise InvalidInput(
            f"storage {text!a}: expected a claim that volumes of backends.toml names: {names}"
        )
    name = f"framesift-{namespace}-{claim}"
    size = {"storage": _SIZE}
    modes = ["ReadWriteMany"]
    spec: Object = {
        "capacity": size,
        "accessModes": modes,
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": claim},
        **_source(text, kind, place),
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": _LABELS},
            "spec": spec,
        },
        {
            **_of("v1", "PersistentVolumeClaim", claim, namespace),
            "spec": {
                "accessModes": modes,
                "resources": {"requests": size},
                "storageClassName": "",
                "volumeName": name,
            },
        },
    ]


def _source(text: str, kind: str, place: str) -> Object:
    """Where a volume's files are. A driver's handle is the site's: its form differs by version."""
    server, _, path = place.partition(":")
    if kind == "nfs" and server and path.startswith("/"):
        return {"nfs": {"server": server, "path": path}}
    if kind == "csi" and server and path:
        return {"csi": {"driver": server, "volumeHandle": path}}
    if kind == "scale" and place:
        return {"csi": {"driver": _SCALE, "volumeHandle": place}}
    raise InvalidInput(
        f"storage {text!a}: expected CLAIM=nfs:SERVER:/PATH, CLAIM=scale:HANDLE or "
        "CLAIM=csi:DRIVER:HANDLE"
    )


def _of(version: str, kind: str, name: str, namespace: str) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
    }
