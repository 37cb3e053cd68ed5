"""Slurm's commands: run with a limit of time, and what they print, read with care.

Each gets the variables of the job that it is about: these may name another cluster (SLURM_CONF)
than those of the process that asks.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

PATIENCE_S = 60.0
"""After which a command of Slurm's is taken for one that does not answer."""
_MOST_CHARS = 200
_ID = re.compile(r"\d+")

Variables = Mapping[str, str]
"""The environment of a command."""


class SlurmSilent(Exception):
    """A command of Slurm's did not answer, refused, or printed what cannot be read.

    The message says which and why, in one line.
    """


@dataclass(frozen=True)
class Row:
    """A job of Slurm's, or a task of a job array."""

    state: str
    """Slurm's word: "PENDING", "RUNNING", "TIMEOUT"..."""
    reason: str
    """Why it waits or ended, Slurm's word."""


ACTIVE = frozenset(
    {
        "PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "REQUEUED", "REQUEUE_FED",
        "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT",
        "STOPPED",
    }
)  # fmt: skip
"""States that a job leaves. Source: squeue(1), job state codes."""


def submit(flags: Sequence[str], script: str, variables: Variables) -> str:
    """Hand a script to sbatch; the job's number.

    Raises:
        SlurmSilent: It was refused, or nobody knows.
    """
    printed = _output(["sbatch", "--parsable", *flags], variables, script).strip()
    number = printed.partition(";")[0]
    if not _ID.fullmatch(number):
        raise SlurmSilent(f"sbatch printed {_shown(printed)}, and no job number")
    return number


def rows(jobs: Iterable[str], variables: Variables) -> dict[tuple[str, int], Row]:
    """Jobs that Slurm still knows, by number and index; 0 is the index of one that is no array.

    Raises:
        SlurmSilent: Nobody knows.
    """
    numbers = sorted(set(jobs), key=int)
    if not numbers:
        return {}
    listed = ["squeue", "--noheader", "--array", "--states=all", "--format=%F|%K|%T|%r"]
    try:
        printed = _output([*listed, f"--jobs={','.join(numbers)}"], variables)
    except SlurmSilent as error:
        if "Invalid job id" in str(error):  # of one that it has forgotten
            return {}
        raise
    known = {}
    for line in printed.splitlines():
        number, index, state, reason = (*line.split("|", 3), "", "", "", "")[:4]
        if not _ID.fullmatch(number) or not re.fullmatch("[A-Z_]+", state):
            raise SlurmSilent(f"squeue printed {_shown(line)}: expected JOB|INDEX|STATE|REASON")
        known[number, int(index) if _ID.fullmatch(index) else 0] = Row(state, reason)
    return known


def numbers_of(name: str, variables: Variables) -> list[str]:
    """Jobs of a name that Slurm still knows, in the order in which they came.

    Raises:
        SlurmSilent: Nobody knows.
    """
    listed = ["squeue", "--noheader", "--states=all", "--format=%F", f"--name={name}"]
    printed = _output(listed, variables)
    for line in printed.split():
        if not _ID.fullmatch(line):
            raise SlurmSilent(f"squeue printed {_shown(line)}: expected a job number")
    return sorted(set(printed.split()), key=int)


def accounted(jobs: Iterable[str], variables: Variables) -> dict[str, str]:
    """The last state of jobs by number, as far as the cluster keeps accounts; else nothing."""
    listed = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State"]
    try:
        printed = _output([*listed, f"--jobs={','.join(sorted(jobs))}"], variables)
    except SlurmSilent:
        return {}
    pairs = (line.split("|") for line in printed.splitlines())
    return {pair[0]: pair[1].split()[0] for pair in pairs if len(pair) == 2 and pair[1].strip()}


def release(jobs: Iterable[str], variables: Variables) -> None:
    """Let jobs begin that were submitted on hold.

    Raises:
        SlurmSilent: Nobody knows.
    """
    _output(["scontrol", "release", ",".join(jobs)], variables)


def cancel(flags: Sequence[str], jobs: Iterable[str], variables: Variables) -> None:
    """scancel, for jobs that may have ended.

    Raises:
        SlurmSilent: It does not answer.
    """
    _output(["scancel", "--quiet", *flags, *jobs], variables, may_refuse=True)


def _output(
    command: list[str], variables: Variables, script: str | None = None, may_refuse: bool = False
) -> str:
    try:
        ended = subprocess.run(
            command, input=script, capture_output=True, text=True, errors="replace",
            timeout=PATIENCE_S, env=dict(variables),
        )  # fmt: skip
    except OSError as error:
        raise SlurmSilent(f"{command[0]}: {error.strerror}; is Slurm installed here?") from error
    except subprocess.TimeoutExpired as error:
        raise SlurmSilent(f"{command[0]} did not answer within {PATIENCE_S:g} s") from error
    if ended.returncode != 0 and not may_refuse:
        message = _shown(ended.stderr or ended.stdout) or f"exit code {ended.returncode}"
        raise SlurmSilent(f"{command[0]} refuses: {message}")
    return ended.stdout


def _shown(text: str) -> str:
    words = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(words.split())[:_MOST_CHARS]
