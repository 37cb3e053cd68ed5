"""The request of a job, for whatever backend runs it, and the paths of its files."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.jobs.environment import Need
from pipeline.jobs.resources import Resources

PYTHON = "{python}"
"""The program of a command that this software's Python runs, wherever the backend has one."""

_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Stage:
    """Commands that may run at once; the next stage begins when all have succeeded."""

    title: str
    """"train", "validate", "merge"..."""
    commands: tuple[tuple[str, ...], ...]
    """Program and arguments of each, without a launcher; see PYTHON."""
    independent: bool = False
    """When one fails, the others go on: what they make counts in the next attempt."""
    optional: bool = False
    """When one fails, the job goes on: what it would have made only saves time."""
    ranks: int = 1
    """Processes of each command, which the backend's launcher starts."""
    uses_gpus: bool = True
    """Whether each gets the GPUs that the job asks for."""
    launcher: Literal["horovod", "ranks", "torchrun"] = "horovod"
    """What starts the ranks: "horovod", or "ranks", which starts as many processes, one rank too,
    and lets each know its number (pipeline.jobs.program.rank), or "torchrun", which starts one
    process on each machine, that becomes PyTorch's launcher of the ranks there.
    """


@dataclass(frozen=True)
class StagingBeside:
    """A staging that runs as long as the job does, and fetches what the job reads."""

    command: tuple[str, ...]
    """Program and arguments."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables set for it."""
    needs: tuple[Need, ...] = ("sources",)
    """What it opens; the job's other commands get no variables for that."""


@dataclass(frozen=True)
class JobRequest:
    """A job to be run."""

    name: str
    """Its unique name."""
    kind: str
    """"train", "validate", or the kind of a command (pipeline.jobs.command_job)."""
    stages: tuple[Stage, ...]
    """What runs, in order."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables set for every command."""
    parallel: int = 2
    """Commands of one stage that run at once, each with all its ranks."""
    needs: tuple[Need, ...] = ()
    """What of the home its commands open."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What was asked for, such as the split and the number of steps."""
    attempt: int = 1
    """How often it was started, this time included."""
    reads: dict[str, str] = field(default_factory=dict)
    """Manifests that its commands read, each with its dataset, NAME@VERSION."""
    owner: str = ""
    """User whose job it is; empty for one that is not limited to collections."""
    staging: StagingBeside | None = None
    """What fetches its frames meanwhile; None where nothing does."""
    resources: Resources = field(default_factory=Resources)
    """What it asks of the machines it runs on."""
    user: str = ""
    """The user who submitted it, limited or not; empty where that is not known."""
    submitted: dict[str, str] | None = None
    """Variables of the process that submitted it, which its programs inherit
    (pipeline.jobs.environment); None where nothing is known of it.
    """
    order: dict[str, Any] = field(default_factory=dict)
    """What was ordered, as JSON: `as_json` of pipeline.runs.orders, or of another order."""

    def to_json(self) -> dict[str, Any]:
        """The request as data that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "JobRequest":
        """The request that `to_json` gave; other keys of a record do not count."""
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        stages = [
            Stage(**{**stage, "commands": tuple(map(tuple, stage["commands"]))})
            for stage in data["stages"]
        ]
        if staging := data.get("staging"):
            needs = tuple(staging["needs"])
            command = tuple(staging["command"])
            fields["staging"] = StagingBeside(command, staging["environment"], needs)
        if "resources" in data:
            fields["resources"] = Resources.from_json(data["resources"])
        return cls(**{**fields, "stages": tuple(stages), "needs": tuple(data.get("needs", ()))})


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
    def staging(self) -> Path:
        """Where the staging beside the job is, and how far (pipeline.jobs.job_staging)."""
        return self.folder / "staging.json"

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


def write_json(path: Path, data: object, *, fsync: bool = False) -> None:
    """Write a JSON file whole.

    Args:
        path: The file.
        data: Its content.
        fsync: Wait until it is on the disk; not for a job's progress, which comes fast.

    Raises:
        StorageError: The disk refuses.
    """
    atomic_write(path, json.dumps(data, indent=2), fsync=fsync)


def overwrite_json(path: Path, data: object) -> None:
    """Write a JSON file over one that is there, in its own blocks: for a disk without room.

    A reader may see it torn for a moment.

    Raises:
        OSError: It is not there, or the disk refuses.
    """
    text = json.dumps(data).encode()
    with path.open("r+b", buffering=0) as file:
        there = path.stat().st_size
        file.write(text.ljust(there))  # JSON may end with blanks
        file.flush()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where the file is not there, not JSON, or too large."""
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError, BadFile):
        return {}
    return data if isinstance(data, dict) else {}
