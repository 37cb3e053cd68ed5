"""Jobs of an LSF cluster."""

from pipeline.jobs.backends.batch.backend import BatchBackend
from pipeline.jobs.backends.lsf.dialect import LsfDialect


class LsfBackend(BatchBackend):
    """Jobs of an LSF cluster: bsub for each stage."""

    def __init__(self) -> None:
        """Speak LSF's words."""
        super().__init__(LsfDialect())
