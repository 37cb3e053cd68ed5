"""The script that each pod of a stage runs, in any image that has sh. Its words are all quoted."""

import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from framesift_start import start
from pipeline.jobs.backends.batch.script import exports, own_umask
from pipeline.jobs.backends.kubernetes.job import KubernetesJob
from pipeline.jobs.backends.kubernetes.settings import NCCL
from pipeline.jobs.backends.launch import with_python
from pipeline.jobs.backends.log_end import heading
from pipeline.jobs.request import Stage

_TEXT = (Path(__file__).parent / "stage.sh").read_text(encoding="utf-8")
_STARTER = "training.slurm_ranks"
_OF_IMAGE = (
    "PATH", "LD_*", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX",
    "VIRTUAL_ENV", "CONDA_PREFIX", "MPLCONFIGDIR", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_*",
    "SLURM_*", "LSF_*", "PBS_*",
)  # fmt: skip
"""Variables that an image or a node's device plugin sets, so that those of the machine that submits
would be wrong."""
_PLACE = {
    "JOB_ID": '"$NAME"',
    "RESTART_COUNT": '"$turn"',
    "STEP_ID": '"$STAGE-$command"',
    "STEP_NUM_TASKS": '"$PODS"',
    "STEP_NUM_NODES": '"$PODS"',
    "NODEID": '"$node"',
    "PROCID": '"$node"',
    "LOCALID": "0",
    "LAUNCH_NODE_IPADDR": '"$FRAMESIFT_POD_IP"',
}
"""Variables by which a pod's ranks know their place, as those of a Slurm step do."""


def script(job: KubernetesJob, stage: Stage, variables: Mapping[str, str]) -> str:
    """The script of all pods of a stage.

    Args:
        job: The stage's.
        stage: What runs.
        variables: That the job inherits; no secrets.

    Raises:
        InvalidInput: A variable of the request has a name that no variable can have.
    """
    request, settings = job.request, job.settings
    wall = request.resources.wall_minutes
    pods = 1 if job.is_mpi(stage) else job.pods(stage)
    values = {
        "NAME": job.name,
        "FOLDER": job.paths.folder,
        "NOTES": job.notes,
        "STAGE": stage.title,
        "HEADING": heading(request.attempt) if request.attempt > 1 else "",
        "SECONDS_TO_KEEP": settings.checkpoint_seconds,
        "SECONDS_TO_WORK": wall * 60 - settings.checkpoint_seconds if wall else "",
        "PODS": pods,
    }
    words = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    own = {name: value for name, value in variables.items() if not _is_of_image(name)}
    all_variables = NCCL[settings.nccl] | own | request.environment
    words += [f"umask {own_umask()}", *exports(all_variables)]
    commands = [
        f"  {index}) set -- {shlex.join(_command(job, stage, command, list(all_variables)))} ;;"
        for index, command in enumerate(stage.commands)
    ]
    cases = ['case "$command" in', *commands, "esac"]
    if stage.ranks > 1 and not job.is_mpi(stage):
        cases += [f"export FRAMESIFT_STEP_{name}={value}" for name, value in _PLACE.items()]
    text = _TEXT.replace("# WORDS\n", "\n".join(words) + "\n")
    return text.replace("# COMMANDS\n", "\n".join(cases) + "\n")


def _command(
    job: KubernetesJob, stage: Stage, command: tuple[str, ...], names: list[str]
) -> list[str]:
    """A command with what starts its ranks."""
    python = job.settings.python
    program = with_python(tuple(map(job.inside, command)), python)
    if stage.ranks == 1:
        return list(program)
    if job.is_mpi(stage):
        passed = [word for name in ("PATH", "LD_LIBRARY_PATH", *names) for word in ("-x", name)]
        spread = ["-bind-to", "none", "-map-by", "slot", *passed, *job.settings.mpirun_arguments]
        return ["mpirun", "-np", str(stage.ranks), *spread, *program]
    starter = (python, *start(_STARTER), str(job.notes))
    return [*starter, str(stage.ranks), job.ranks_of_task(stage), *program]


def _is_of_image(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _OF_IMAGE)
