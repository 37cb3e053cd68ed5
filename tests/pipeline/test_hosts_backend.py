"""The backend hosts, over two network namespaces with a real sshd each."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from pipeline.jobs.backends.hosts.backend import HostsBackend
from pipeline.jobs.backends.hosts.settings import Host, HostsSettings, hosts_settings, spread
from pipeline.jobs.backends.interface import Backend
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage, read_json
from pipeline.jobs.resources import Resources
from tests.pipeline.backend_suite import (
    BackendSuite,
    Run,
    called,
    eventually,
    shell,
    torchrun_request,
)
from tests.pipeline.homes import REPOSITORY
from tests.two_hosts import Machines, two_hosts

MEET = """
import os, socket, sys
rank, address = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(address)
    others = [server.accept()[0].makefile().readline().strip() for _ in range(3)]
    print("met", sorted(others))
else:
    while True:
        try:
            line = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            pass
    line.sendall(f"{rank}@{socket.gethostname()}\\n".encode())
print(socket.gethostname(), *(os.environ[name] for name in (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")))
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two machines of this test run."""
    with two_hosts(tmp_path_factory.mktemp("machines") / "ssh") as up:
        yield up


@pytest.mark.hosts
class TestHosts(BackendSuite):
    """What every backend does, on two machines of two slots each."""

    machines: Machines

    @pytest.fixture
    def backend(self) -> Backend:
        """Over ssh."""
        return HostsBackend()

    @pytest.fixture
    def queue(self, tmp_path: Path, machines: Machines) -> JobQueue:
        """A home whose backends.toml names both."""
        self.machines = machines
        (tmp_path / "jobs").mkdir()
        settings = tmp_path / "backends.toml"
        settings.write_text(machines.settings)
        return JobQueue(tmp_path / "jobs", backends=settings)

    def lose(self, run: Run) -> None:
        """The machine of the first slot."""
        self.machines.lose(self.machines.names[0])

    def test_ranks_are_spread_by_slots_and_meet(self, backend: Backend, queue: JobQueue) -> None:
        """Four processes on two machines, which connect to the first over the network."""
        stage = Stage("run", ((PYTHON, "-c", MEET),), ranks=4, launcher="ranks")
        request = JobRequest("spread", "run", (stage,), parallel=1, resources=Resources(ranks=4))
        run = Run(backend, queue, request)
        first, second = self.machines.names
        status = run.ended()
        assert status.state == "done", (status, *(run.log("run", rank) for rank in range(4)))
        said = [run.log("run", rank).splitlines()[-1] for rank in range(4)]
        assert said == [
            f"{first} 0 4 0 2",
            f"{first} 1 4 1 2",
            f"{second} 2 4 0 2",
            f"{second} 3 4 1 2",
        ]
        assert f"met ['1@{first}', '2@{second}', '3@{second}']" in run.log("run", 0)

    def test_torchrun_starts_once_on_each_machine(self, backend: Backend, queue: JobQueue) -> None:
        """For two ranks on one and one on the other, which meet at the first machine's address."""
        run = Run(backend, queue, torchrun_request(queue.folder, "launched", Resources(ranks=3)))
        assert run.ended().state == "done", run.status
        first, second = (called(run.log("run", task).splitlines()[-1]) for task in range(2))
        assert not run.paths.log("run", 2).exists()
        one, other = self.machines.names
        assert (first["by"], second["by"]) == (f"{one} 0", f"{other} 2")
        assert (first["nproc-per-node"], second["nproc-per-node"]) == ("2", "1")
        assert (first["rdzv-conf"], second["rdzv-conf"]) == ("is_host=true", "is_host=false")
        address = first["local-addr"]
        assert address not in (second["local-addr"], "127.0.0.1", "")
        for told in (first, second):
            assert told["rdzv-endpoint"].startswith(f"{address}:")
            assert told["rdzv-endpoint"] == first["rdzv-endpoint"]
            assert (told["nnodes"], told["rdzv-id"]) == ("2", "launched-1")

    def test_one_rank_on_each_machine(self, backend: Backend, queue: JobQueue) -> None:
        """As the request says; shards take the slots in turn."""
        resources = Resources(ranks=2, ranks_per_node=1)
        shards = tuple(shell("hostname") for _ in range(4))
        request = JobRequest(
            "each", "validate", (Stage("shards", shards),), parallel=2, resources=resources
        )
        run = Run(backend, queue, request)
        assert run.ended().state == "done", run.status
        names = [run.log("shards", index).strip() for index in range(4)]
        assert names == [*self.machines.names] * 2
        assert read_json(run.paths.status)["hosts"] == [*self.machines.names]

    def test_a_job_waits_for_slots_and_outlives_who_submitted_it(
        self, backend: Backend, queue: JobQueue, tmp_path: Path
    ) -> None:
        """The submitting process is killed; another waits until all slots are free."""
        here = queue.folder
        program = (
            "import os, signal, sys\n"
            "from pathlib import Path\n"
            "from pipeline.jobs.backends.hosts.backend import HostsBackend\n"
            "from pipeline.jobs.queue import JobQueue\n"
            "from pipeline.jobs.request import JobPaths, JobRequest, Stage\n"
            "from pipeline.jobs.resources import Resources\n"
            f"wait = 'touch {here}/works; while [ ! -e {here}/go ]; do sleep 0.1; done'\n"
            "script = f'{wait}; echo on'\n"
            "stage = Stage('only', (('/bin/sh', '-c', script),))\n"
            "request = JobRequest('first', 'train', (stage,), resources=Resources(ranks=3))\n"
            f"queue = JobQueue(Path({str(here)!r}), backends=Path({str(queue.backends)!r}))\n"
            "paths = JobPaths(queue.folder / 'first'); paths.folder.mkdir()\n"
            "HostsBackend().submit(request, paths, queue, 'first-1')\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        killed = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=False)
        assert killed.returncode == -signal.SIGKILL
        eventually((here / "works").exists)
        stage = Stage("only", (shell("echo second"),))
        request = JobRequest("second", "train", (stage,), resources=Resources(ranks=2))
        second = Run(backend, queue, request)
        eventually(lambda: "slot" in second.status.waits)
        (here / "go").touch()
        paths = JobPaths(here / "first")
        handle = backend.find("first-1", paths)
        assert handle is not None
        eventually(lambda: backend.statuses({handle: paths})[handle].state == "done")
        assert paths.log("only", 0).read_text() == "on\n"
        assert second.ended().state == "done"

    def test_a_runner_that_is_killed_leaves_nothing_running(
        self, backend: Backend, queue: JobQueue
    ) -> None:
        """The programs on other machines end, with time to keep what they have."""
        here = queue.folder
        script = (
            f"trap 'touch {here}/kept; exit' TERM; touch {here}/works; while :; do sleep 0.1; done"
        )
        run = Run(backend, queue, JobRequest("gone", "train", (Stage("only", (shell(script),)),)))
        eventually((here / "works").exists)
        os.kill(ProcessId.parse(run.handle).pid, signal.SIGKILL)
        eventually((here / "kept").exists)
        assert run.ended().is_lost

    def test_a_machine_that_does_not_answer(self, backend: Backend, queue: JobQueue) -> None:
        """It is named, and the job is lost, so that its next attempt begins by itself."""
        assert queue.backends is not None
        text = queue.backends.read_text().replace(f"{self.machines.names[0]}:2", "127.0.0.1:2")
        queue.backends.write_text(text)
        run = Run(backend, queue, JobRequest("away", "train", (Stage("only", (shell(":"),)),)))
        status = run.ended()
        assert (status.state, status.is_lost) == ("failed", True)
        assert "machine 127.0.0.1: it cannot be reached" in status.error


def test_settings_are_checked(tmp_path: Path) -> None:
    """Names that ssh would take for options, machines twice, more ranks than slots."""
    file = tmp_path / "backends.toml"
    for hosts, words in (
        ('["-oProxyCommand=touch x:1"]', "expected NAME:SLOTS"),
        ('["a b:1"]', "expected NAME:SLOTS"),
        ('["a:0"]', "expected NAME:SLOTS"),
        ('["a:1", "a:2"]', "name each machine once"),
        ("[]", "no machine is known"),
    ):
        file.write_text(f"[hosts]\nhosts = {hosts}\n")
        with pytest.raises(InvalidInput, match=words):
            hosts_settings(file, Resources())
    file.write_text('[hosts]\nhosts = ["user@a.b:4", "c"]\n')
    machines = hosts_settings(file, Resources()).machines
    assert machines == (Host("user@a.b", 4), Host("c", 1))
    with pytest.raises(InvalidInput, match="at most 2, 1 on each machine"):
        spread(machines, Resources(ranks=3, ranks_per_node=1))
    with pytest.raises(InvalidInput, match="backend hosts has no such setting"):
        HostsBackend().check(Resources(gpus=1), JobQueue(tmp_path, backends=file))
    assert replace(HostsSettings(), hosts=("a",)).machines == (Host("a", 1),)
