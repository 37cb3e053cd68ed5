"""Chooses the variables that jobs inherit: those on a list, and those that they need.

What decides how a job's programs run comes from the process that submits it and is kept in its
record (`submitted_variables`), so that each step and each attempt has it, whichever process starts
that. Secrets are in no record: they, and what belongs to a machine, come from the process that
starts an attempt.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from catalog.errors import InvalidInput
from pipeline.runs.accelerators import OF_ACCELERATORS

Need = Literal["catalog", "sources"]
"""Needs of a job that is one of this program's own commands: the catalog, or the files of
sources."""

_OF_SUBMITTER = (
    "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "MPLCONFIGDIR", "LD_*", "MALLOC_*",
    "PYTHON*", "VIRTUAL_ENV", "CONDA_PREFIX", "NUMBA_*", *OF_ACCELERATORS,
    # The cluster that a scheduler's commands ask; the rest of SLURM_*, LSF_* and PBS_* is of an
    # allocation.
    "SLURM_CONF", "LSF_ENVDIR", "LSF_SERVERDIR", "LSF_BINDIR", "LSF_LIBDIR", "PBS_CONF_FILE",
    "PBS_SERVER", "PBS_EXEC",
)  # fmt: skip
_OF_MACHINE = ("HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "XDG_*")
_OF_LOGIN = ("SSH_*", "KRB5*")
"""Variables that are of one login, in no record: another login has others."""
_SECRET = re.compile("TOKEN|SECRET|PASSW|JWT|CREDENTIAL|PRIVATE|KEY", re.IGNORECASE)
"""Pattern of variables that are not passed on although the lists above allow them."""
_LOGIN = re.compile("://[^/@]+@")
"""Pattern of values that have a login: postgresql://user:password@host, https://token@host."""

_OF_THE_HOME = ("FRAMESIFT_*", "PG*", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "OTEL_*")
_OF_A_NEED: Mapping[Need, tuple[str, ...]] = {
    "catalog": ("FRAMESIFT_CATALOG_METADATA", "AWS_*", "*_PROXY", "*_proxy"),
    "sources": ("FRAMESIFT_SECRET_KEY", "AWS_*", "*_PROXY", "*_proxy", "DASK_*"),
}
_NEVER = ("FRAMESIFT_SERVER", "FRAMESIFT_SERVER_*", "FRAMESIFT_TOKEN", "FRAMESIFT_CONFIG")
"""Variables of a server's clients, which are never passed on: a job works on the home."""


def submitted_variables(environment: Mapping[str, str], further: Iterable[str]) -> dict[str, str]:
    """The variables of the process that submits a job which the job's record keeps: no secrets.

    Args:
        environment: Of that process.
        further: Names, or patterns such as "WANDB_*", that every job gets.
    """
    further = tuple(further)
    return {
        name: value
        for name, value in inherited(environment, (), further).items()
        if _is_submitters(name, further) and not _LOGIN.search(value)
    }


def inherited(
    environment: Mapping[str, str],
    needs: Iterable[Need],
    further: Iterable[str],
    submitted: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables that a job gets.

    Its programs run in its own folder: what PYTHONPATH says relative to this one is made absolute.

    Args:
        environment: Of the process that starts it.
        needs: What the job opens; nothing for training and validation, which open local files.
        further: Names, or patterns such as "WANDB_*", that every job gets.
        submitted: Those that its record keeps (`submitted_variables`), in the place of those of
            ``environment``; None where it keeps none.
    """
    needed, further = list(needs), tuple(further)
    patterns = [pattern for need in needed for pattern in _OF_A_NEED[need]]
    other_patterns = {
        pattern for need in _OF_A_NEED.keys() - needed for pattern in _OF_A_NEED[need]
    }
    home = _OF_THE_HOME if needed else ()

    def is_inherited(name: str) -> bool:
        if _is_one(name, further):
            return True
        if _is_one(name, _NEVER):
            return False
        if _is_one(name, patterns):
            return True
        if _is_one(name, home):
            return not _is_one(name, other_patterns)
        return _is_one(name, (*_OF_SUBMITTER, *_OF_MACHINE)) and not _SECRET.search(name)

    passed = {name: value for name, value in environment.items() if is_inherited(name)}
    if path := passed.get("PYTHONPATH"):
        folders = (str(Path(folder).absolute()) if folder else "" for folder in path.split(":"))
        passed["PYTHONPATH"] = ":".join(folders)
    if submitted is None:
        return passed
    own = {
        name: value
        for name, value in passed.items()
        if not _is_submitters(name, further) or _LOGIN.search(value)
    }
    return {**own, **submitted}


def _is_submitters(name: str, further: Iterable[str]) -> bool:
    """True for a variable that a job has from the process that submits it."""
    if _is_one(name, (*_OF_MACHINE, *_OF_LOGIN)) or _SECRET.search(name):
        return False
    return _is_one(name, (*_OF_SUBMITTER, *further))


def need_variables(
    names: Iterable[str], environment: Mapping[str, str], further: Iterable[str]
) -> None:
    """Accept variables that a job needs if it gets all of them.

    Args:
        names: Of variables.
        environment: Of the process that submits it.
        further: Names or patterns that every job gets besides those of this module.

    Raises:
        InvalidInput: One is not set here, or not passed on.
    """
    further = tuple(further)
    for name in names:
        if name not in environment:
            raise InvalidInput(
                f"environment {name}: is not set where the job is submitted; set it there"
            )
        if name not in inherited({name: ""}, (), further):
            raise InvalidInput(
                f"environment {name}: no job inherits it; FRAMESIFT_JOB_ENVIRONMENT names "
                "variables that all do"
            )


def need_inherited(names: Iterable[str], variables: Mapping[str, str]) -> None:
    """Accept an attempt if it has all variables that its job needs.

    Args:
        names: Of variables.
        variables: Those that it inherits.

    Raises:
        InvalidInput: It lacks one, which the job's record does not keep.
    """
    for name in names:
        if name not in variables:
            raise InvalidInput(
                f"environment {name}: no record keeps a secret, or what is of one login, and the "
                "process that starts this attempt lacks it; set it, and name it in "
                "FRAMESIFT_JOB_ENVIRONMENT, for framesift serve, or for framesift jobs daemon"
            )


def _is_one(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
