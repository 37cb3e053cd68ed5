"""A job as a batch scheduler gets it, a batch job for each stage."""

import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.cache.lease import cache_of
from pipeline.jobs.backends.batch.settings import BatchSettings
from pipeline.jobs.backends.launch import LAUNCHER
from pipeline.jobs.request import JobPaths, JobRequest, Stage


@dataclass(frozen=True)
class BatchJob:
    """A job as it is handed to a scheduler."""

    request: JobRequest
    """What runs."""
    paths: JobPaths
    """Of its folder."""
    name: str
    """Of the attempt."""
    settings: BatchSettings
    """Of the backend."""
    jobs: Path
    """Folder of all jobs, where the models of others are."""
    backend: str
    """The backend's name."""

    @property
    def notes(self) -> Path:
        """Folder of what the scripts say of themselves."""
        return notes_of(self.paths, self.backend, self.name)

    @property
    def image(self) -> str:
        """The image that programs run in; empty for none."""
        return self.request.resources.image or self.settings.image

    @property
    def python(self) -> str:
        """Python on nodes, or in the image."""
        return self.settings.python or ("python3" if self.image else sys.executable)

    @property
    def node_python(self) -> str:
        """Python on nodes, outside any image."""
        return self.settings.python or sys.executable

    @property
    def cores(self) -> int:
        """Cores of each rank."""
        return self.request.resources.cores_of_rank

    def ranks_per_node(self, stage: Stage) -> int:
        """Ranks of a stage on each node; the last may have fewer."""
        return self.request.resources.ranks_on_node(stage.ranks)

    def ranks_of_task(self, stage: Stage) -> str:
        """Ranks of a task, one on each node, as training.slurm_ranks is told of them."""
        launcher = LAUNCHER if stage.launcher == "torchrun" else ""
        return f"{launcher}{self.ranks_per_node(stage)}"

    def nodes(self, stage: Stage) -> int:
        """Nodes of a stage."""
        return -(-stage.ranks // self.ranks_per_node(stage))

    def gpus(self, stage: Stage) -> int:
        """GPUs of each rank of a stage."""
        return self.request.resources.gpus if stage.uses_gpus else 0

    def mounts(self) -> dict[str, str]:
        """Folders here that programs in a container see, and where."""
        reads = [Path(manifest) for manifest in self.request.reads]
        caches = [cache for manifest in reads if (cache := cache_of(manifest)) is not None]
        folders = dict.fromkeys(map(str, (self.jobs, *reads, *caches)))
        return {folder: folder for folder in folders} | dict(self.request.resources.mounts)

    def container(self, stage: Stage) -> list[str]:
        """The words before a program that runs in an image; none without one."""
        if not self.image:
            return []
        words = [self.settings.apptainer, "exec"]
        words += ["--nv"] if self.gpus(stage) else []
        words += self.settings.container_arguments
        for here, there in self.mounts().items():
            words += ["--bind", f"{here}:{there}"]
        return [*words, self.image]

    def mpirun(self, stage: Stage) -> list[str]:
        """mpirun, which asks the scheduler for its hosts, and the container of each rank."""
        spread = ["-npernode", str(self.ranks_per_node(stage)), "--bind-to", "none", "-x", "PATH"]
        arguments = self.settings.mpirun_arguments
        return ["mpirun", "-np", str(stage.ranks), *spread, *arguments, *self.container(stage)]

    def inside(self, word: str) -> str:
        """A word of a command, where it is a path as the job's programs have it."""
        for here, there in self.request.resources.mounts.items():
            if word == here or word.startswith(here.rstrip("/") + "/"):
                return there.rstrip("/") + word[len(here.rstrip("/")) :]
        return word


def notes_of(paths: JobPaths, backend: str, name: str) -> Path:
    """Folder of what the scripts of an attempt say of themselves."""
    return paths.folder / backend / name
