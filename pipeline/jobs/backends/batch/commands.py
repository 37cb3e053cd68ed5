"""Commands of a batch scheduler, run with a limit of time.

Each gets the variables of the job that it is about: these may name another cluster (SLURM_CONF,
LSF_ENVDIR, PBS_CONF_FILE) than those of the process that asks.
"""

import subprocess
from collections.abc import Mapping, Sequence

PATIENCE_S = 60.0
"""After which a scheduler's command is taken for one that does not answer."""
_MOST_CHARS = 200

Variables = Mapping[str, str]
"""The environment of a command."""


class SchedulerSilent(Exception):
    """A command of a scheduler did not answer, refused, or printed what cannot be read.

    The message says which and why, in one line.
    """


def printed(
    command: Sequence[str],
    variables: Variables,
    scheduler: str,
    script: str | None = None,
    *,
    may_refuse: bool = False,
) -> str:
    """What a command prints.

    Args:
        command: Program and arguments.
        variables: Its environment.
        scheduler: Whose command it is, for people.
        script: Its standard input; None for nothing.
        may_refuse: Whether an exit code that is not 0 is an answer, too.

    Raises:
        SchedulerSilent: It is not there, refuses, or does not answer.
    """
    try:
        ended = subprocess.run(
            list(command), input=script or "", capture_output=True, text=True, errors="replace",
            timeout=PATIENCE_S, env=dict(variables),
        )  # fmt: skip
    except OSError as error:
        raise SchedulerSilent(
            f"{command[0]}: {error.strerror}; is {scheduler} installed here?"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SchedulerSilent(f"{command[0]} did not answer within {PATIENCE_S:g} s") from error
    if ended.returncode != 0 and not may_refuse:
        message = shown(ended.stderr or ended.stdout) or f"exit code {ended.returncode}"
        raise SchedulerSilent(f"{command[0]} refuses: {message}")
    return ended.stdout


def shown(text: str) -> str:
    """A scheduler's words in one line that a terminal may show."""
    words = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(words.split())[:_MOST_CHARS]
