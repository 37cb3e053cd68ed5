"""One rank of a user's program: ``python -m pipeline.jobs.program.rank FOLDER CWD -- PROGRAM...``.

With ``--checkpoint`` before the dashes, {checkpoint} in the program's arguments is to be filled.

It learns from its launcher which rank it is, tells the program by the variables that programs know
(PyTorch's and those that Lightning and MMEngine ask for, RANK, WORLD_SIZE, NODE_RANK..., and
FRAMESIFT_RANK, FRAMESIFT_RANKS), and becomes it. With ``--torchrun`` before ``--`` it becomes
PyTorch's launcher of all ranks of its machine, each of which comes here again.
"""

import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framesift_start import start
from pipeline.jobs.program.checkpoints import noted_checkpoint
from pipeline.jobs.program.command_line import with_checkpoint
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import JobPaths, read_json

RANK, RANKS = "FRAMESIFT_RANK", "FRAMESIFT_RANKS"
LOCAL_RANK, LOCAL_RANKS = "FRAMESIFT_LOCAL_RANK", "FRAMESIFT_LOCAL_RANKS"
NODE, NODES = "FRAMESIFT_NODE", "FRAMESIFT_NODES"
"""The machine's number among those of the job, and theirs."""

TORCHRUN = "--torchrun"
JOB_FOLDER = "FRAMESIFT_JOB_FOLDER"
"""By which framesift.data.Scores finds the job's folder."""

CHECKPOINT = "FRAMESIFT_CHECKPOINT"
"""Path of the checkpoint that the program goes on from; empty for none."""

FILLED = "--checkpoint"
"""Says that {checkpoint} in the program's arguments is to be filled."""

_REQUEUES = ("SLURM_RESTART_COUNT", "LSB_JOBID", "PBS_JOBID")
"""Variables of a job that was put back into the queue; LSF's and PBS's jobs all have theirs."""

_LAUNCHERS = (
    (RANK, RANKS, LOCAL_RANK, LOCAL_RANKS),
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)
"""Variables by which launchers tell rank, ranks, and both on this machine."""

_NODES = (
    (NODE, NODES),
    ("GROUP_RANK", "GROUP_WORLD_SIZE"),
    ("SLURM_NODEID", "SLURM_STEP_NUM_NODES"),
)
"""Variables by which launchers tell the machine's number, and how many there are."""

_TOLD = (RANK, RANKS, LOCAL_RANK, LOCAL_RANKS, NODE, NODES)
_RUN_ID = "TORCHELASTIC_RUN_ID"
_MODULE = "pipeline.jobs.program.rank"
_PYTHON = re.compile(r"python[\d.]*")

_USUAL_PORT = 29_500
"""PyTorch's."""


@dataclass(frozen=True)
class Rank:
    """A rank among all, and among those of its machine, which is one of the job's."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    first_host: str
    node: int = 0
    nodes: int = 1

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "Rank":
        """The rank that a launcher tells; the only one where none does."""
        for names in _LAUNCHERS:
            if names[0] in variables and names[1] in variables:
                # Slurm writes "2(x3)" for three machines of two tasks.
                counts = [variables.get(name, "0").partition("(")[0] for name in names]
                rank, ranks, local_rank, local_ranks = (
                    int(text.split(",")[0] or 0) for text in counts
                )
                node = _node(variables)
                return cls(rank, ranks, local_rank, local_ranks, _first_host(variables), *node)
        return cls(0, 1, 0, 1, _first_host(variables))

    def variables(self, port: object) -> dict[str, str]:
        """The variables that tell the program of its job."""
        return {
            NODE: str(self.node),
            NODES: str(self.nodes),
            "NODE_RANK": str(self.node),
            "GROUP_RANK": str(self.node),
            RANK: str(self.rank),
            RANKS: str(self.ranks),
            LOCAL_RANK: str(self.local_rank),
            LOCAL_RANKS: str(self.local_ranks),
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.ranks),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_ranks),
            "MASTER_ADDR": self.first_host,
            "MASTER_PORT": str(port),
        }


def _first_host(variables: Mapping[str, str]) -> str:
    return variables.get("MASTER_ADDR") or "127.0.0.1"


def _node(variables: Mapping[str, str]) -> tuple[int, int]:
    for node, nodes in _NODES:
        if node in variables and nodes in variables:
            return int(variables[node]), int(variables[nodes])
    return 0, 1


def torchrun(rank: Rank, port: object, attempt: str, program: Sequence[str]) -> list[str]:
    """The command line of PyTorch's launcher on a machine, which starts the ranks there.

    A rank that ends ill ends all of them: what begins again is the job.

    Args:
        rank: The machine's first.
        port: At which the first machine's launcher waits for the others.
        attempt: Name of the job's attempt.
        program: With its arguments, which each rank runs.
    """
    python = _PYTHON.fullmatch(Path(program[0]).name)
    flags = {
        "nnodes": rank.nodes,
        "nproc-per-node": rank.local_ranks,
        "max-restarts": 0,
        "rdzv-backend": "c10d",
        "rdzv-endpoint": f"{rank.first_host}:{port}",
        "rdzv-id": attempt,
        "rdzv-conf": f"is_host={'true' if rank.node == 0 else 'false'}",
        "local-addr": _address_towards(rank.first_host),
    }
    return [
        *((program[0], "-m", "torch.distributed.run") if python else ("torchrun",)),
        *(f"--{name}={value}" for name, value in flags.items() if value != ""),
        "--no-python",
    ]


def _address_towards(host: str) -> str:
    """This machine's address by which it reaches another; empty where nothing says."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def main(arguments: Sequence[str]) -> int:
    """Become the program; the exit status where that fails."""
    paths, folder = JobPaths(Path(arguments[0])), arguments[1]
    end = arguments.index("--")
    options, program = arguments[2:end], [*arguments[end + 1 :]]
    checkpoint = noted_checkpoint(
        paths.folder, begins_again=any(name in os.environ for name in _REQUEUES)
    )
    if FILLED in options:
        program = with_checkpoint(program, checkpoint)
    rendezvous = read_json(ProgramPaths(paths.folder).rendezvous)
    # Over several machines the launcher says where rank 0 is; on one the job has chosen a port.
    port = os.environ.get("MASTER_PORT") or rendezvous.get("port", _USUAL_PORT)
    rank = Rank.of(os.environ)
    attempt = f"{paths.folder.name}-{read_json(paths.request).get('attempt', 1)}"
    variables = {**os.environ, JOB_FOLDER: str(paths.folder), CHECKPOINT: checkpoint}
    if TORCHRUN in options:
        again = (sys.executable, *start(_MODULE), *arguments[:2], "--")
        program = [*torchrun(rank, port, attempt, program), *again, *program]
        # Its ranks learn from it which they are.
        variables = {
            name: value
            for name, value in variables.items()
            if name not in _TOLD and not name.startswith("HOROVOD_")
        }
    else:
        # Lightning asks by it whether ranks are started from outside, and is one of them.
        variables = {_RUN_ID: attempt} | variables | rank.variables(port)
    try:
        os.chdir(folder)
        os.execvpe(program[0], program, variables)  # noqa: S606 (arguments, no shell)
    except OSError as error:
        what = f"folder {folder}" if Path.cwd() != Path(folder).resolve() else program[0]
        sys.stderr.write(
            f"error: {what}: {error.strerror}; expected a program that is on PATH, or its whole "
            "path, and a folder of this machine\n"
        )
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
