"""What is known of an attempt in its folder: its plan, and what its pods said of themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.jobs.backends.kubernetes.job import KubernetesJob, notes_of
from pipeline.jobs.backends.kubernetes.settings import KubernetesSettings
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json, write_json

_PLAN, BEGAN = "plan.json", "began"


@dataclass(frozen=True)
class Plan:
    """What an attempt was submitted with."""

    namespace: str
    """Of its objects."""
    settings: KubernetesSettings
    """Of the backend."""

    @classmethod
    def read(cls, paths: JobPaths, name: str) -> "Plan | None":
        """The plan of an attempt; None where nothing was submitted."""
        document = read_json(plan_file(paths, name))
        known = KubernetesSettings.__dataclass_fields__
        if "namespace" not in document:
            return None
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in document["settings"].items()
            if name in known
        }
        return cls(document["namespace"], KubernetesSettings(**values))

    def write(self, paths: JobPaths, name: str) -> None:
        """Keep it.

        Raises:
            StorageError: The disk refuses.
        """
        write_json(plan_file(paths, name), asdict(self), fsync=True)

    def job(self, request: JobRequest, paths: JobPaths, name: str) -> KubernetesJob:
        """The job as it was submitted."""
        return KubernetesJob(request, paths, name, self.settings, self.namespace)


def plan_file(paths: JobPaths, name: str) -> Path:
    """File of an attempt's plan."""
    return notes_of(paths, name) / _PLAN


@dataclass(frozen=True)
class Note:
    """What a pod of a stage wrote of itself."""

    command: int
    """The command of the stage that it ran, or some of whose ranks."""
    words: Mapping[str, Any]
    """Empty where it wrote nothing."""

    @property
    def code(self) -> int | None:
        """The exit code of its program; None until that ended."""
        code = self.words.get("code")
        return code if isinstance(code, int) else None

    @property
    def end(self) -> str:
        """What ended the program: "cancelled", "cluster", "wall", "turn"; empty for itself."""
        return str(self.words.get("end", ""))

    @property
    def started(self) -> datetime | None:
        """When its program began first, naive UTC."""
        try:
            return datetime.fromisoformat(self.words.get("started") or "")
        except (TypeError, ValueError):
            return None


def notes_of_stage(job: KubernetesJob, stage: Stage) -> list[Note]:
    """Notes of all pods that a stage has."""
    pods = 1 if job.is_mpi(stage) else job.pods(stage)
    return [
        Note(index // pods, read_json(job.notes / f"{stage.title}-{index}.json"))
        for index in range(pods * len(stage.commands))
    ]


def first_failed(notes: Sequence[Note]) -> Note | None:
    """The note that says most of why a stage failed; None where none did.

    One that failed by itself says more than those that were ended with it.
    """
    failed = [note for note in notes if note.code != 0]
    return min(failed, key=lambda note: (note.code is None, bool(note.end)), default=None)
