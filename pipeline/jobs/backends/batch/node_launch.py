"""The words that start ranks where a scheduler only starts a program on a host of a job."""

from framesift_start import start
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.request import Stage

_LAUNCHER = "training.node_tasks"
_STARTER = "training.slurm_ranks"


def node_launch(job: BatchJob, stage: Stage, program: str) -> list[str]:
    """A launcher that starts a task on each node of the job, which starts the node's ranks.

    Args:
        job: The stage's.
        stage: What runs.
        program: What starts a command on a host: blaunch or pbs_tmrsh.
    """
    ranks, per_node = str(stage.ranks), str(job.ranks_per_node(stage))
    launcher = [job.node_python, *start(_LAUNCHER), program, str(job.notes), ranks, per_node]
    starter = [job.python, *start(_STARTER), job.inside(str(job.notes)), ranks]
    return [*launcher, *job.container(stage), *starter, job.ranks_of_task(stage)]
