"""The request of a job, for whatever backend runs it, and the paths of its files."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.jobs.environment import Need

_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Stage:
    """Commands that may run at once; the next stage begins when all have succeeded.

    Attributes:
        title: "train", "validate", "merge"...
        commands: Program and arguments of each.
        independent: When one fails, the others go on: what they make counts in the next attempt.
    """

    title: str
    commands: tuple[tuple[str, ...], ...]
    independent: bool = False


@dataclass(frozen=True)
class JobRequest:
    """A job to be run.

    Attributes:
        name: Its unique name.
        kind: "train", "validate", or the kind of a command (pipeline.jobs.command_job).
        stages: What runs, in order.
        environment: Variables set for every command.
        parallel: Commands of one stage that run at once.
        needs: What of the home its commands open.
        settings: What was asked for, such as the split and the number of steps.
        attempt: How often it was started, this time included.
    """

    name: str
    kind: str
    stages: tuple[Stage, ...]
    environment: dict[str, str] = field(default_factory=dict)
    parallel: int = 2
    needs: tuple[Need, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    attempt: int = 1

    def to_json(self) -> dict[str, Any]:
        """The request as data that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "JobRequest":
        """The request that `to_json` gave."""
        stages = tuple(
            Stage(
                stage["title"],
                tuple(tuple(command) for command in stage["commands"]),
                stage.get("independent", False),
            )
            for stage in data["stages"]
        )
        return cls(
            data["name"],
            data["kind"],
            stages,
            data["environment"],
            data["parallel"],
            tuple(data.get("needs", ())),  # requests of the first releases have none of these
            data.get("settings", {}),
            data.get("attempt", 1),
        )


@dataclass(frozen=True)
class JobPaths:
    """Every file name inside a job's folder, in one place."""

    folder: Path

    @property
    def request(self) -> Path:
        """The job's request."""
        return self.folder / "request.json"

    @property
    def status(self) -> Path:
        """Status that the backend's runner last wrote."""
        return self.folder / "status.json"

    @property
    def result(self) -> Path:
        """The JSON document that a command ended with (pipeline.jobs.command_job)."""
        return self.folder / "result.json"

    @property
    def progress(self) -> Path:
        """Progress that a command last wrote."""
        return self.folder / "progress.json"

    @property
    def lock(self) -> Path:
        """Locked as long as a process of the job runs."""
        return self.folder / "lock"

    @property
    def cancel(self) -> Path:
        """There when somebody asked the job to end."""
        return self.folder / "cancel"

    @property
    def logs(self) -> Path:
        """Output of each command."""
        return self.folder / "logs"

    @property
    def results(self) -> Path:
        """Results that shards leave for the merge."""
        return self.folder / "results"

    @property
    def model(self) -> Path:
        """A training's model folder."""
        return self.folder / "model"

    @property
    def report(self) -> Path:
        """A validation's report folder."""
        return self.folder / "report"

    def log(self, stage: str, index: int) -> Path:
        """Output of one command, errors included."""
        return self.logs / f"{stage}-{index}.log"


def write_json(path: Path, data: object) -> None:
    """Write a JSON file whole; as fast as a job's progress comes, so the disk is not waited for.

    Raises:
        StorageError: The disk refuses.
    """
    atomic_write(path, json.dumps(data, indent=2), fsync=False)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where the file is not there, not JSON, or too large."""
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError, BadFile):
        return {}
    return data if isinstance(data, dict) else {}
