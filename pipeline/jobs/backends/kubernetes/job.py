"""A job as a cluster gets it."""

from dataclasses import dataclass
from pathlib import Path

from catalog.errors import InvalidInput
from pipeline.jobs.backends.kubernetes.settings import NAME, KubernetesSettings, Volume
from pipeline.jobs.backends.launch import LAUNCHER
from pipeline.jobs.request import JobPaths, JobRequest, Stage


@dataclass(frozen=True)
class KubernetesJob:
    """A job as it is handed to a cluster."""

    request: JobRequest
    """What runs."""
    paths: JobPaths
    """Of its folder."""
    name: str
    """Of the attempt."""
    settings: KubernetesSettings
    """Of the backend."""
    namespace: str
    """Of its objects."""

    @property
    def notes(self) -> Path:
        """Folder of what the attempt's pods say of themselves."""
        return notes_of(self.paths, self.name)

    @property
    def image(self) -> str:
        """The image that programs run in."""
        return self.request.resources.image or self.settings.image

    def ranks_per_pod(self, stage: Stage) -> int:
        """Ranks of a stage in each pod; the last may have fewer."""
        return self.request.resources.ranks_on_node(stage.ranks)

    def pods(self, stage: Stage) -> int:
        """Pods of each command of a stage."""
        return -(-stage.ranks // self.ranks_per_pod(stage))

    def is_mpi(self, stage: Stage) -> bool:
        """Whether the MPI operator starts the ranks of a stage."""
        is_horovod = stage.launcher == "horovod" and stage.ranks > 1
        return is_horovod and self.settings.kind == "mpijob"

    def ranks_of_task(self, stage: Stage) -> str:
        """Ranks of a pod, as training.slurm_ranks is told of them."""
        launcher = LAUNCHER if stage.launcher == "torchrun" else ""
        return f"{launcher}{self.ranks_per_pod(stage)}"

    def volumes(self) -> list[Volume]:
        """Volumes of pods: those of the settings, and the job's mounts out of them.

        Raises:
            InvalidInput: A mount lies in none of them.
        """
        volumes = list(self.settings.folders)
        for here, there in self.request.resources.mounts.items():
            volumes.append(mounted(self.settings.folders, here, there))
        return volumes

    def inside(self, word: str) -> str:
        """A word of a command, where it is a path as the job's programs have it."""
        for here, there in self.request.resources.mounts.items():
            if word == here or word.startswith(here.rstrip("/") + "/"):
                return there.rstrip("/") + word[len(here.rstrip("/")) :]
        return word


def mounted(volumes: tuple[Volume, ...], here: str, there: str) -> Volume:
    """A folder of this machine as a volume that pods see elsewhere.

    Raises:
        InvalidInput: None of the volumes holds it.
    """
    for volume in sorted(volumes, key=lambda each: len(each.path), reverse=True):
        if is_below(here, volume.path):
            rest = here[len(volume.path.rstrip("/")) :].strip("/")
            folder = "/".join(filter(None, (volume.folder, rest)))
            return Volume(there.rstrip("/"), volume.claim, folder, volume.read_only)
    raise InvalidInput(
        f"mount {here}={there}: no claim holds {here}; name one in volumes of [{NAME}] of "
        "backends.toml, such as PATH=CLAIM:FOLDER"
    )


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def notes_of(paths: JobPaths, name: str) -> Path:
    """Folder of what an attempt's pods say of themselves."""
    return paths.folder / NAME / name
