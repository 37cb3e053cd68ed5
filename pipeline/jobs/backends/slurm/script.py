"""The hand-over to sbatch for a stage: flags, and a script whose words are all quoted."""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import InvalidInput
from framesift_start import start
from pipeline.cache.lease import cache_of
from pipeline.jobs.backends.launch import with_python
from pipeline.jobs.backends.log_end import heading
from pipeline.jobs.backends.slurm.settings import SlurmSettings
from pipeline.jobs.request import JobPaths, JobRequest, Stage

_TEXT = (Path(__file__).parent / "stage.sh").read_text(encoding="utf-8")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOSTS = '"$hosts"'


@dataclass(frozen=True)
class SlurmJob:
    """A job as it is handed to Slurm, a batch job for each stage."""

    request: JobRequest
    """What runs."""
    paths: JobPaths
    """Of its folder."""
    name: str
    """Of the attempt."""
    settings: SlurmSettings
    """Of the backend."""
    jobs: Path
    """Folder of all jobs, where the models of others are."""

    @property
    def notes(self) -> Path:
        """Folder of what the scripts say of themselves."""
        return self.paths.folder / "slurm" / self.name

    @property
    def image(self) -> str:
        """The image that programs run in; empty for none."""
        return self.request.resources.image or self.settings.image

    @property
    def python(self) -> str:
        """Python on nodes, or in the image."""
        return self.settings.python or ("python3" if self.image else sys.executable)

    def flags(self, stage: Stage) -> list[str]:
        """Flags of sbatch, but for those that name other jobs."""
        request, resources, settings = self.request, self.request.resources, self.settings
        per_node = _ranks_per_node(self, stage)
        flags: dict[str, object] = {
            "job-name": self.name,
            "chdir": self.paths.folder,
            "output": "/dev/null",
            "partition": settings.partition,
            "account": settings.account,
            "comment": f"framesift user {request.user}" if request.user else "",
            "qos": settings.qos,
            "reservation": settings.reservation,
            "ntasks": stage.ranks,
            "ntasks-per-node": per_node if stage.ranks > 1 else None,
            "cpus-per-task": resources.cores,
            "mem": f"{resources.memory_mb}M" if resources.memory_mb else None,
            "gres": f"gpu:{resources.gpus * per_node}"
            if resources.gpus and stage.uses_gpus
            else None,
            "nodelist": resources.nodes,
            "constraint": resources.constraint,
            "time": resources.wall_minutes,
            "signal": f"B:USR1@{settings.checkpoint_seconds}" if resources.wall_minutes else None,
        }
        listed = [f"--{flag}={value}" for flag, value in flags.items() if value not in ("", None)]
        count = len(stage.commands)
        if count > 1:
            most = f"%{self.request.parallel}" if self.request.parallel < count else ""
            listed.append(f"--array=0-{count - 1}{most}")
        # On hold until its number is kept: what nobody knows of never begins.
        return [*listed, "--hold", "--requeue", "--kill-on-invalid-dep=yes"]

    def script(self, stage: Stage) -> str:
        """The script of a stage's batch job, for all tasks of its array."""
        request, settings = self.request, self.settings
        description = {
            "NAME": self.name,
            "FOLDER": self.paths.folder,
            "NOTES": self.notes,
            "STAGE": stage.title,
            "HEADING": heading(request.attempt) if request.attempt > 1 else "",
            "SECONDS_TO_KEEP": settings.checkpoint_seconds,
            "MOST_TURNS": settings.most_requeues,
            "INDEPENDENT": 1 if stage.independent else "",
            "STEPS": 1 if stage.ranks > 1 and self._starter(stage) == "srun" else "",
        }
        values = [f"{name}={shlex.quote(str(value))}" for name, value in description.items()]
        lease = (settings.python or sys.executable, *start(_LEASE), str(self.paths.folder))
        lease_line = f"lease=({shlex.join(lease)})" if self.request.reads else "lease=()"
        commands = [
            f"{index}) set -- {self._command(stage, command)} ;;"
            for index, command in enumerate(stage.commands)
        ]
        cases = "\n".join(['case "$task" in', *commands, "esac"])
        setup = f"setup=({shlex.join(settings.setup)})"
        words = "\n".join([*values, lease_line, setup, *_exports(request.environment)])
        return _TEXT.replace("# WORDS\n", words + "\n").replace("# COMMANDS\n", cases + "\n")

    def _command(self, stage: Stage, command: tuple[str, ...]) -> str:
        """A command with launcher and container, quoted."""
        program = with_python(tuple(map(self._inside, command)), self.python)
        return " ".join(
            word if word == _HOSTS else shlex.quote(word)
            for word in (*self._launcher(stage), *program)
        )

    def _starter(self, stage: Stage) -> str:
        """The program that starts ranks; Horovod's own starts only Horovod's programs."""
        return self.settings.launcher if stage.launcher == "horovod" else "srun"

    def _launcher(self, stage: Stage) -> list[str]:
        """The words before a program: launcher, then container, or a container that launches."""
        ranks, container = stage.ranks, self._container(stage)
        if ranks == 1:
            return container
        per_node = _ranks_per_node(self, stage)
        cores = self.request.resources.cores or 1
        inside_out = self.settings.container == "inside-out" and bool(container)
        if self._starter(stage) == "mpirun":
            spread = ["-npernode", str(per_node), "--bind-to", "none", "-x", "PATH"]
            return [
                "mpirun",
                "-np",
                str(ranks),
                *spread,
                *self.settings.mpirun_arguments,
                *container,
            ]
        if self._starter(stage) == "horovodrun":
            return ["horovodrun", "-np", str(ranks), "-H", _HOSTS, "--gloo", *container]
        srun = ["srun", "--kill-on-bad-exit=1", "--input=none", "--distribution=block"]
        nodes = -(-ranks // per_node)
        if inside_out:
            srun += [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
            srun += [f"--cpus-per-task={per_node * cores}"]
        else:
            srun += [f"--ntasks={ranks}", f"--cpus-per-task={cores}"]
        starter = [self.python, *start("training.slurm_ranks"), self._inside(str(self.notes))]
        return [*srun, *container, *starter, str(ranks), str(per_node if inside_out else 0)]

    def _container(self, stage: Stage) -> list[str]:
        if not self.image:
            return []
        reads = [Path(manifest) for manifest in self.request.reads]
        caches = [cache for manifest in reads if (cache := cache_of(manifest)) is not None]
        folders = dict.fromkeys(map(str, (self.jobs, *reads, *caches)))
        binds = {folder: folder for folder in folders} | dict(self.request.resources.mounts)
        words = [self.settings.apptainer, "exec"]
        words += ["--nv"] if self.request.resources.gpus and stage.uses_gpus else []
        words += self.settings.container_arguments
        for here, there in binds.items():
            words += ["--bind", f"{here}:{there}"]
        return [*words, self.image]

    def _inside(self, word: str) -> str:
        """A word of a command, where it is a path as the job's programs have it."""
        for here, there in self.request.resources.mounts.items():
            if word == here or word.startswith(here.rstrip("/") + "/"):
                return there.rstrip("/") + word[len(here.rstrip("/")) :]
        return word


_LEASE = "pipeline.jobs.backends.slurm.lease"


def _ranks_per_node(job: SlurmJob, stage: Stage) -> int:
    return min(job.request.resources.ranks_per_node or stage.ranks, stage.ranks)


def _exports(variables: Mapping[str, str]) -> list[str]:
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise InvalidInput(f"environment {name}: is no name of a variable")
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
