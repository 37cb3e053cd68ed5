"""One rank of a user's program: ``python -m pipeline.jobs.program.rank FOLDER CWD -- PROGRAM...``.

It learns from its launcher which rank it is, tells the program by the variables that programs know
(PyTorch's RANK, WORLD_SIZE, MASTER_ADDR..., and FRAMESIFT_RANK, FRAMESIFT_RANKS), and becomes it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import read_json

RANK, RANKS = "FRAMESIFT_RANK", "FRAMESIFT_RANKS"
LOCAL_RANK, LOCAL_RANKS = "FRAMESIFT_LOCAL_RANK", "FRAMESIFT_LOCAL_RANKS"
JOB_FOLDER = "FRAMESIFT_JOB_FOLDER"
"""By which framesift.data.Scores finds the job's folder."""

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

_USUAL_PORT = 29_500
"""PyTorch's."""


@dataclass(frozen=True)
class Rank:
    """A rank among all, and among those of its machine."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int
    first_host: str

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
                return cls(rank, ranks, local_rank, local_ranks, _first_host(variables))
        return cls(0, 1, 0, 1, _first_host(variables))

    def variables(self, port: object) -> dict[str, str]:
        """The variables that tell the program of its job."""
        return {
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


def main(arguments: Sequence[str]) -> int:
    """Become the program; the exit status where that fails."""
    paths, folder, program = ProgramPaths(Path(arguments[0])), arguments[1], [*arguments[3:]]
    # Over several machines the launcher says where rank 0 is; on one the job has chosen a port.
    port = os.environ.get("MASTER_PORT") or read_json(paths.rendezvous).get("port", _USUAL_PORT)
    variables = {**os.environ, **Rank.of(os.environ).variables(port)}
    variables[JOB_FOLDER] = str(paths.folder)
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
