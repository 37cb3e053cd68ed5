"""Chooses the variables that jobs inherit: those on a list, and those that they need."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from catalog.errors import InvalidInput

Need = Literal["catalog", "sources"]
"""Needs of a job that is one of this program's own commands: the catalog, or the files of
sources."""

_EVERY_JOB = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ",
    "TMPDIR", "TMP", "TEMP", "XDG_*", "MPLCONFIGDIR", "LD_*", "MALLOC_*",
    "PYTHON*", "VIRTUAL_ENV", "CONDA_PREFIX", "NUMBA_*",
    # Accelerators, and how processes on them find each other and share cores.
    "CUDA_*", "CUDNN_*", "NVIDIA_*", "NCCL_*", "ROCR_*", "HIP_*", "HSA_*", "TF_*", "XLA_*",
    "HOROVOD_*", "GLOO_*", "OMPI_*", "PMIX_*", "UCX_*", "FI_*", "OMP_*", "KMP_*", "MKL_*",
    "OPENBLAS_*",
    # The allocation that the job was begun in.
    "SLURM_*", "LSB_*", "LSF_*",
)  # fmt: skip
_SECRET = re.compile("TOKEN|SECRET|PASSW|JWT|CREDENTIAL|PRIVATE|KEY")
"""Pattern of variables that are not passed on although the list above allows them, such as
SLURM_JWT."""

_OF_THE_HOME = ("FRAMESIFT_*", "PG*", "SSL_CERT_*", "REQUESTS_CA_BUNDLE")
_OF_A_NEED: Mapping[Need, tuple[str, ...]] = {
    "catalog": ("FRAMESIFT_CATALOG_METADATA", "AWS_*", "*_PROXY", "*_proxy"),
    "sources": ("FRAMESIFT_SECRET_KEY", "AWS_*", "*_PROXY", "*_proxy", "DASK_*"),
}
_NEVER = ("FRAMESIFT_SERVER", "FRAMESIFT_SERVER_*", "FRAMESIFT_TOKEN", "FRAMESIFT_CONFIG")
"""Variables of a server's clients, which are never passed on: a job works on the home."""


def inherited(
    environment: Mapping[str, str], needs: Iterable[Need], further: Iterable[str]
) -> dict[str, str]:
    """The variables of an environment that a job gets.

    Its programs run in its own folder: what PYTHONPATH says relative to this one is made absolute.

    Args:
        environment: Of the process that starts it.
        needs: What the job opens; nothing for training and validation, which open local files.
        further: Names, or patterns such as "WANDB_*", that every job gets.
    """
    needed = list(needs)
    patterns = [pattern for need in needed for pattern in _OF_A_NEED[need]]
    others = {pattern for need in _OF_A_NEED.keys() - needed for pattern in _OF_A_NEED[need]}
    home = _OF_THE_HOME if needed else ()

    def is_inherited(name: str) -> bool:
        if _is_one(name, further):
            return True
        if _is_one(name, _NEVER):
            return False
        if _is_one(name, patterns):
            return True
        if _is_one(name, home):
            return not _is_one(name, others)
        return _is_one(name, _EVERY_JOB) and not _SECRET.search(name)

    passed = {name: value for name, value in environment.items() if is_inherited(name)}
    if path := passed.get("PYTHONPATH"):
        folders = (str(Path(folder).absolute()) if folder else "" for folder in path.split(":"))
        passed["PYTHONPATH"] = ":".join(folders)
    return passed


def need_variables(
    names: Iterable[str], environment: Mapping[str, str], further: Iterable[str]
) -> None:
    """Go on where a job that needs these variables gets them.

    Args:
        names: Of variables.
        environment: Of the process that starts it.
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


def _is_one(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
