"""Jobs of a PBS cluster."""

from pipeline.jobs.backends.batch.backend import BatchBackend
from pipeline.jobs.backends.pbs.dialect import PbsDialect


class PbsBackend(BatchBackend):
    """Jobs of a PBS cluster: qsub for each stage."""

    def __init__(self) -> None:
        """Speak PBS's words."""
        super().__init__(PbsDialect())
