"""Jobs of a Slurm cluster."""

from pipeline.jobs.backends.batch.backend import BatchBackend
from pipeline.jobs.backends.slurm.dialect import SlurmDialect


class SlurmBackend(BatchBackend):
    """Jobs of a Slurm cluster: sbatch for each stage."""

    def __init__(self) -> None:
        """Speak Slurm's words."""
        super().__init__(SlurmDialect())
