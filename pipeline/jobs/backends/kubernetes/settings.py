"""Settings of the backend kubernetes: the table [kubernetes] of HOME/backends.toml."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from catalog.errors import InvalidInput
from pipeline.jobs.backends.batch.settings import need_one_of
from pipeline.jobs.backends.settings import settings_of
from pipeline.jobs.resources import Resources

NAME = "kubernetes"
KINDS = ("job", "mpijob")
MPI_VERSIONS = ("v2beta1", "v1alpha2")
NCCL: Mapping[str, dict[str, str]] = {
    "": {},
    "tcp": {"NCCL_IB_DISABLE": "1", "NCCL_NET_GDR_LEVEL": "0"},
    "infiniband": {"NCCL_IB_DISABLE": "0", "NCCL_NET_GDR_LEVEL": "0"},
    "gpudirect": {"NCCL_IB_DISABLE": "0", "NCCL_NET_GDR_LEVEL": "1"},
}
"""How NCCL exchanges -> its variables; nothing is set without a choice."""
RDMA = ("infiniband", "gpudirect")
_ASKED = ("queue", "claim")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Volume:
    """A folder that pods see at the path that it has here."""

    path: str
    """The folder."""
    claim: str
    """PersistentVolumeClaim that holds it."""
    folder: str
    """Folder of the claim's volume; empty for all of it."""
    read_only: bool


@dataclass(frozen=True)
class KubernetesSettings:
    """Settings of the backend kubernetes."""

    kubeconfig: str = ""
    """File by which the cluster is reached; without one, the service account of the pod that asks,
    or else ~/.kube/config.
    """
    context: str = ""
    """Context of that file; its current one when empty."""
    namespace: str = ""
    """Namespace of jobs; the one of the service account or the context when empty."""
    image: str = ""
    """Image that has Framesift: of conductors, and of programs where a job names none."""
    images: tuple[str, ...] = ()
    """Further images that a job may name for its programs."""
    pull_secrets: tuple[str, ...] = ()
    """Secrets that pull them."""
    python: str = "python3"
    """Python in images."""
    service_account: str = "framesift"
    """Service account of pods."""
    volumes: tuple[str, ...] = ()
    """"PATH=CLAIM[:FOLDER][:ro]" each: folders of this machine, and where pods find them."""
    claim: str = ""
    """A claim that a job counts on; one of the volumes'."""
    secrets: tuple[str, ...] = ()
    """"VARIABLE=SECRET:KEY" each: variables that programs have from secrets of the namespace."""
    uid: int = 0
    """User number of pods, who owns the home; 0 for the one that the cluster chooses."""
    gid: int = 0
    """Group number of pods; 0 for the one that the cluster chooses."""
    node_selector: tuple[str, ...] = ()
    """"LABEL=VALUE" each: labels that nodes have."""
    tolerations: tuple[str, ...] = ()
    """"KEY[=VALUE]:EFFECT" each: taints of nodes that pods bear."""
    shm_mb: int = 1024
    """Size of /dev/shm in programs' pods [MiB]; it counts as their memory."""
    gpu: str = "nvidia.com/gpu"
    """Resource that a GPU is."""
    resources: tuple[str, ...] = ()
    """"NAME=AMOUNT" each: what each pod with GPUs gets besides, such as "rdma/shared_ib0=1"."""
    queue: str = ""
    """Kueue's LocalQueue; without one, pods begin as soon as nodes have room."""
    nccl: str = ""
    """How GPUs of several nodes exchange: "tcp", "infiniband" or "gpudirect"."""
    kind: str = KINDS[0]
    """What ranks of a training are: pods of an indexed "job", or an "mpijob" of the MPI operator's.
    """
    mpi_version: str = MPI_VERSIONS[0]
    """Version of the operator's MPIJob."""
    mpirun_arguments: tuple[str, ...] = ()
    """Further arguments of an MPIJob's mpirun."""
    most_ranks: int = 1024
    """Processes that a job may have."""
    checkpoint_seconds: int = 120
    """For how long before the wall time ends, and after a cancel, programs may keep what they have
    [s].
    """
    most_requeues: int = 100
    """How often a job goes on in a new turn after its wall time."""

    @property
    def folders(self) -> tuple[Volume, ...]:
        """The volumes.

        Raises:
            InvalidInput: A text names none.
        """
        volumes = []
        for text in self.volumes:
            path, _, source = text.partition("=")
            claim, *rest = source.split(":")
            read_only = rest[-1:] == ["ro"]
            rest = rest[:-1] if read_only else rest
            folder = rest[0] if rest else ""
            is_inside = ".." not in PurePosixPath(folder).parts and not folder.startswith("/")
            if not (
                path.startswith("/") and _LABEL.fullmatch(claim) and len(rest) < 2 and is_inside
            ):
                raise InvalidInput(
                    f"[{NAME}] volumes: {text!a}: expected PATH=CLAIM, PATH=CLAIM:FOLDER or "
                    "PATH=CLAIM:FOLDER:ro, such as /data/cache=scale:cache:ro"
                )
            volumes.append(Volume(path.rstrip("/") or "/", claim, folder.strip("/"), read_only))
        return tuple(volumes)

    @property
    def secret_variables(self) -> dict[str, tuple[str, str]]:
        """Variable -> secret and key.

        Raises:
            InvalidInput: A text names none.
        """
        named = {}
        for text in self.secrets:
            name, _, source = text.partition("=")
            secret, _, key = source.partition(":")
            if not (name.isidentifier() and _LABEL.fullmatch(secret) and key):
                raise InvalidInput(
                    f"[{NAME}] secrets: {text.partition('=')[0]!a}: expected VARIABLE=SECRET:KEY, "
                    "such as WANDB_API_KEY=wandb:key"
                )
            named[name] = secret, key
        return named

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels of nodes.

        Raises:
            InvalidInput: A text is none.
        """
        return labels(f"[{NAME}] node_selector", self.node_selector)

    @property
    def borne_taints(self) -> list[dict[str, str]]:
        """Tolerations as a pod has them.

        Raises:
            InvalidInput: A text is none.
        """
        rows = []
        for text in self.tolerations:
            taint, _, effect = text.rpartition(":")
            key, has_value, value = taint.partition("=")
            if effect not in _EFFECTS or not _KEY.fullmatch(key):
                raise InvalidInput(
                    f"[{NAME}] tolerations: {text!a}: expected KEY:EFFECT or KEY=VALUE:EFFECT, "
                    f"where EFFECT is one of {', '.join(_EFFECTS)}, such as "
                    "nvidia.com/gpu:NoSchedule"
                )
            of_value = {"operator": "Equal", "value": value} if has_value else {}
            rows.append({"key": key, "operator": "Exists", "effect": effect} | of_value)
        return rows

    @property
    def extended(self) -> dict[str, str]:
        """Further resources of a pod with GPUs, and how much of each.

        Raises:
            InvalidInput: A text is none.
        """
        return labels(f"[{NAME}] resources", self.resources, "NAME=AMOUNT", "rdma/shared_ib0=1")


def labels(
    where: str, texts: tuple[str, ...], form: str = "LABEL=VALUE", example: str = "gpu=a100"
) -> dict[str, str]:
    """Pairs that texts with "=" are.

    Raises:
        InvalidInput: A text is none.
    """
    pairs = {}
    for text in texts:
        key, has_value, value = text.partition("=")
        if not has_value or not _KEY.fullmatch(key):
            raise InvalidInput(f"{where}: {text!a}: expected {form}, such as {example}")
        pairs[key] = value
    return pairs


def kubernetes_settings(file: Path | None, resources: Resources) -> KubernetesSettings:
    """The settings for a job.

    Raises:
        InvalidInput: They cannot be used, or do not allow what the job asks for.
        UnknownName: There is no such setting.
    """
    settings = settings_of(KubernetesSettings, NAME, file, resources.options, _ASKED)
    choices: dict[str, tuple[Any, ...]] = {
        "kind": KINDS, "mpi_version": MPI_VERSIONS, "nccl": tuple(NCCL),
    }  # fmt: skip
    for name, known in choices.items():
        need_one_of(file, NAME, name, getattr(settings, name), known)
    for name in ("uid", "gid", "shm_mb", "most_requeues"):
        if getattr(settings, name) < 0:
            raise InvalidInput(f"[{NAME}] {name} = {getattr(settings, name)}: expected 0 or more")
    if settings.checkpoint_seconds < 1:
        raise InvalidInput(
            f"[{NAME}] checkpoint_seconds = {settings.checkpoint_seconds}: expected at least 1"
        )
    if settings.namespace and not _LABEL.fullmatch(settings.namespace):
        raise InvalidInput(
            f"[{NAME}] namespace = {settings.namespace!r}: expected lower-case letters, digits and "
            "'-', 63 at most"
        )
    # What a text cannot be is told before anything is submitted.
    _ = settings.folders, settings.secret_variables, settings.node_labels, settings.borne_taints
    _ = settings.extended
    claims = list(dict.fromkeys(volume.claim for volume in settings.folders))
    if settings.claim and settings.claim not in claims:
        names = ", ".join(claims) or "none"
        raise InvalidInput(
            f"claim {settings.claim}: pods have no such claim; expected one that volumes of "
            f"[{NAME}] in backends.toml names: {names}"
        )
    if not settings.image:
        raise InvalidInput(
            f'backend {NAME}: no image is known; expected image = "REGISTRY/framesift:TAG" below '
            f"[{NAME}] in {file or 'backends.toml of the home'}, an image that has Framesift"
        )
    if resources.image not in ("", settings.image, *settings.images):
        allowed = ", ".join((settings.image, *settings.images))
        raise InvalidInput(
            f"image {resources.image}: expected one that [{NAME}] of backends.toml names as image "
            f"or in images: {allowed}"
        )
    return settings
