"""The script of a stage's batch job, whose words are all quoted."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from catalog.errors import InvalidInput
from framesift_start import start
from pipeline.jobs.backends.batch.dialect import Dialect
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.backends.launch import with_python
from pipeline.jobs.backends.log_end import heading
from pipeline.jobs.request import Stage

HOSTS = '"$hosts"'
"""A word of a launcher that the script's shell replaces: each host with its ranks."""

_TEXT = (Path(__file__).parent / "stage.sh").read_text(encoding="utf-8")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEASE = "pipeline.jobs.backends.batch.lease"


def script(job: BatchJob, stage: Stage, dialect: Dialect, variables: Mapping[str, str]) -> str:
    """The script of a stage, for all tasks of its array.

    Args:
        job: The stage's.
        stage: What runs.
        dialect: The scheduler's.
        variables: That the job inherits; a script sets them where its scheduler does not.

    Raises:
        InvalidInput: A variable of the request has a name that no variable can have.
    """
    request, settings = job.request, job.settings
    wall = None if dialect.warns else request.resources.wall_minutes
    description = {
        "NAME": job.name,
        "FOLDER": job.paths.folder,
        "NOTES": job.notes,
        "STAGE": stage.title,
        "HEADING": heading(request.attempt) if request.attempt > 1 else "",
        "SECONDS_TO_KEEP": settings.checkpoint_seconds,
        "SECONDS_TO_WORK": wall * 60 - settings.checkpoint_seconds if wall else "",
        "MOST_TURNS": settings.most_requeues,
        "INDEPENDENT": 1 if stage.independent else "",
        "STEPS": 1 if dialect.signals_ranks(job, stage) else "",
    }
    values = [f"{name}={shlex.quote(str(value))}" for name, value in description.items()]
    lease = (job.node_python, *start(_LEASE), str(job.paths.folder))
    lease_line = f"lease=({shlex.join(lease)})" if request.reads else "lease=()"
    commands = [
        f"{index}) set -- {_command(job, stage, dialect, command)} ;;"
        for index, command in enumerate(stage.commands)
    ]
    cases = "\n".join(['case "$task" in', *commands, "esac"])
    setup = f"setup=({shlex.join(settings.setup)})"
    own = [] if dialect.passes_variables else [f"umask {own_umask()}", *exports(variables)]
    words = "\n".join([*values, lease_line, setup, *own, *exports(request.environment)])
    text = _TEXT.replace("# DIALECT\n", dialect.words)
    return text.replace("# WORDS\n", words + "\n").replace("# COMMANDS\n", cases + "\n")


def _command(job: BatchJob, stage: Stage, dialect: Dialect, command: tuple[str, ...]) -> str:
    """A command with launcher and container, quoted."""
    program = with_python(tuple(map(job.inside, command)), job.python)
    launcher = dialect.launcher(job, stage) if stage.ranks > 1 else dialect.container(job, stage)
    return " ".join(word if word == HOSTS else shlex.quote(word) for word in (*launcher, *program))


def own_umask() -> str:
    """This process's mask of new files, in octal digits."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(line.split()[1] for line in status.splitlines() if line.startswith("Umask:"))


def exports(variables: Mapping[str, str]) -> list[str]:
    """Lines of a shell that set variables.

    Raises:
        InvalidInput: One has a name that no variable can have.
    """
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise InvalidInput(f"environment {name}: is no name of a variable")
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
