"""Command lines of programs, once it is known where they run."""

from framesift_start import start
from pipeline.jobs.program.rank import LOCAL_RANK, LOCAL_RANKS, NODE, NODES, RANK, RANKS
from pipeline.jobs.request import PYTHON, Stage

LAUNCHER = "launcher:"
"""Before the ranks of each machine, for training.slurm_ranks: it starts one process on each."""


def with_python(command: tuple[str, ...], python: str) -> tuple[str, ...]:
    """A command with the Python that runs it, where it asks for one; our modules are ours there."""
    if command[:1] != (PYTHON,):
        return command
    if command[1:3] == ("-P", "-m"):
        return (python, *start(command[3]), *command[4:])
    return (python, *command[1:])


def on_this_machine(stage: Stage, python: str) -> list[tuple[str, ...]]:
    """Commands of a stage, ranks under a launcher that starts them all here.

    Args:
        stage: Its commands, as they are on any backend.
        python: This machine's.
    """
    programs = [with_python(command, python) for command in stage.commands]
    if stage.launcher == "torchrun":
        return [_rank(0, stage.ranks, each) for each in programs]
    if stage.launcher == "ranks":
        return [_rank(rank, stage.ranks, each) for each in programs for rank in range(stage.ranks)]
    if stage.ranks == 1:
        return programs
    launcher = (python, *start("training.local_ranks"), "-np", str(stage.ranks))
    return [(*launcher, "-H", f"localhost:{stage.ranks}", "--gloo", *each) for each in programs]


def _rank(rank: int, ranks: int, program: tuple[str, ...]) -> tuple[str, ...]:
    """One of so many processes of a program on this machine."""
    variables = (
        (RANK, rank), (RANKS, ranks), (LOCAL_RANK, rank), (LOCAL_RANKS, ranks),
        (NODE, 0), (NODES, 1),
    )  # fmt: skip
    return ("env", *(f"{name}={number}" for name, number in variables), *program)
