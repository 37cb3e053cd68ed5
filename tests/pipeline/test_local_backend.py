"""The behaviour that all backends share, of the backend local."""

import os
import signal
from pathlib import Path

import pytest

from pipeline.jobs.backends.interface import Backend
from pipeline.jobs.backends.local import LocalBackend
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.queue import JobQueue
from tests.pipeline.backend_suite import BackendSuite, Run, cut_the_power, fill_the_disk


@pytest.mark.wide
class TestLocal(BackendSuite):
    """Real runners, real commands, real signals."""

    @pytest.fixture
    def backend(self) -> Backend:
        """This machine."""
        return LocalBackend()

    def lose(self, run: Run) -> None:
        """Its runner is killed."""
        os.kill(ProcessId.parse(run.handle).pid, signal.SIGKILL)

    def test_a_full_disk(self, backend: Backend, queue: JobQueue) -> None:
        """The runner writes its last word over the one before."""
        fill_the_disk(backend, queue)

    def test_a_power_cut(self, backend: Backend, queue: JobQueue, tmp_path: Path) -> None:
        """The runner says that it is done once all is on the disk."""
        cut_the_power(backend, queue, tmp_path)
