"""The backends lsf and pbs, against stand-ins that go by the schedulers' manuals."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from catalog.errors import InvalidInput, JobFailed, UnknownName
from pipeline.jobs.backends.batch import commands
from pipeline.jobs.backends.batch.standing import Handle
from pipeline.jobs.backends.interface import Backend
from pipeline.jobs.backends.lsf.backend import LsfBackend
from pipeline.jobs.backends.pbs.backend import PbsBackend
from pipeline.jobs.backends.slurm.backend import SlurmBackend
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage
from pipeline.jobs.resources import Resources
from tests.batch_stand_ins.stand_in import StandIn, lsf_stand_in, pbs_stand_in
from tests.pipeline.backend_suite import BackendSuite, Run, eventually, shell

_PLACES = "RANK WORLD_SIZE LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_CROSS_RANK FRAMESIFT_RANKS WHO"


def said_by_ranks(names: str) -> tuple[str, ...]:
    """A program that prints variables, in one write: ranks share a log."""
    words = f"' '.join(os.environ[name] for name in {names.split()!r})"
    return (PYTHON, "-c", f"import os, sys; sys.stdout.write({words} + '\\n')")


class BatchSuite(BackendSuite):
    """What all backends do, and what those of batch schedulers do besides."""

    name: ClassVar[str]

    @pytest.fixture
    def cluster(self) -> StandIn:
        """A stand-in of two hosts of two slots that runs; tests set its variables."""
        raise NotImplementedError

    kill: ClassVar[tuple[str, ...]]
    """A command that kills a job, its script included."""

    def lose(self, run: Run) -> None:
        """An administrator kills it."""
        subprocess.run([*self.kill, *Handle.parse(run.handle).numbers], check=True)

    @pytest.fixture(autouse=True)
    def _variables(self, cluster: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running = cluster
        for name, value in cluster.items():
            monkeypatch.setenv(name, value)

    def test_ranks_over_nodes(self, backend: Backend, queue: JobQueue) -> None:
        """Three on two hosts know their places; each has the job's variables."""
        stage = Stage("train", (said_by_ranks(_PLACES),), ranks=3)
        request = JobRequest(
            "ranks", "train", (stage,), {"WHO": "it's $HOME"},
            resources=Resources(ranks=3, ranks_per_node=2),
        )  # fmt: skip
        run = Run(backend, queue, request)
        assert run.ended().state == "done", (run.status, run.log("train"))
        assert sorted(run.log("train").splitlines()) == [
            "0 3 0 2 0 3 it's $HOME", "1 3 1 2 0 3 it's $HOME", "2 3 0 1 1 3 it's $HOME",
        ]  # fmt: skip
        assert not list(run.paths.folder.rglob("task-*"))

    def test_files_are_as_their_submitter_makes_them(
        self, backend: Backend, queue: JobQueue
    ) -> None:
        """Their modes, in the job's folder."""
        run = Run(backend, queue, JobRequest("file", "train", (Stage("one", (shell("> made"),)),)))
        assert run.ended().state == "done"
        (run.paths.folder / "here").touch()
        modes = {(run.paths.folder / name).stat().st_mode for name in ("made", "here")}
        assert len(modes) == 1

    def test_a_rank_that_dies(self, backend: Backend, queue: JobQueue) -> None:
        """It ends the other one, on another host, and the job has failed with its words."""
        program = (
            "import os, sys, time\n"
            "if os.environ['RANK'] == '1': sys.exit('error: no GPU here')\n"
            "time.sleep(600)\n"
        )
        resources = Resources(ranks=2, ranks_per_node=1)
        stage = Stage("train", ((PYTHON, "-c", program),), ranks=2)
        run = Run(backend, queue, JobRequest("dies", "train", (stage,), resources=resources))
        assert run.ended().error.startswith("no GPU here (train 0, log ")

    def test_ranks_that_are_cancelled_keep_what_they_have(
        self, backend: Backend, queue: JobQueue
    ) -> None:
        """Those of both hosts."""
        here = queue.folder
        script = (
            f"trap 'touch {here}/kept$FRAMESIFT_RANK; exit 1' TERM; "
            f"touch {here}/works$FRAMESIFT_RANK; while :; do sleep 0.1; done"
        )
        resources = Resources(ranks=2, ranks_per_node=1)
        stage = Stage("train", (shell(script),), ranks=2)
        run = Run(backend, queue, JobRequest("keeps", "train", (stage,), resources=resources))
        eventually(lambda: (here / "works0").exists() and (here / "works1").exists())
        backend.cancel(run.handle, run.paths)
        assert run.ended().state == "cancelled"
        assert (here / "kept0").exists()
        assert (here / "kept1").exists()

    def test_a_turn_that_ends_goes_on_in_the_next(self, backend: Backend, queue: JobQueue) -> None:
        """Before its wall time ends a program keeps what it has, and is in the queue again."""
        here = queue.folder
        settings = here / "backends.toml"
        settings.write_text(f"[{self.name}]\ncheckpoint_seconds = 298\n")
        script = (
            f"trap 'touch {here}/kept; exit 1' TERM; [ ! -e {here}/kept ] || exit 0; "
            "while :; do sleep 0.1; done"
        )
        stage = Stage("train", (shell(script),))
        request = JobRequest("turns", "train", (stage,), resources=Resources(wall_minutes=5))
        run = Run(backend, replace(queue, backends=settings), request)
        assert run.ended().state == "done", run.status
        # On a machine that stands still a turn may end before its program begins.
        assert "==> turn 2 <==\n" in run.log("train")
        settings.write_text(f"[{self.name}]\ncheckpoint_seconds = 298\nmost_requeues = 0\n")
        (here / "kept").unlink()
        run = Run(backend, replace(queue, backends=settings), replace(request, name="last"))
        status = run.ended()
        assert (status.state, status.is_lost) == ("failed", True)
        assert "train 0 was ended before its wall time did, and is not in the " in status.error

    def test_a_host_that_dies(self, backend: Backend, queue: JobQueue) -> None:
        """The scheduler has the job begin again elsewhere, which is its next turn."""
        here = queue.folder
        script = f"[ ! -e {here}/works ] || exit 0; touch {here}/works; exec sleep 600"
        run = Run(backend, queue, JobRequest("moves", "train", (Stage("train", (shell(script),)),)))
        eventually((here / "works").exists)
        eventually(lambda: run.status.state == "running")
        self.running.lose(Handle.parse(run.handle).numbers[0])
        assert run.ended().state == "done", run.status
        assert run.log("train") == "==> turn 2 <==\n"

    def test_what_waits_says_why(self, backend: Backend, queue: JobQueue) -> None:
        """Behind a job that has all slots; cancelled, it never begins, its neighbour does."""
        here = queue.folder
        full = Stage("train", (shell(f"until [ -e {here}/go ]; do sleep 0.1; done"),), ranks=4)
        resources = Resources(ranks=4, ranks_per_node=2)
        first = Run(backend, queue, JobRequest("first", "train", (full,), resources=resources))
        eventually(lambda: first.status.state == "running")
        one = Stage("train", (shell(f"touch {here}/ran-$0"),))
        waits = [
            Run(backend, queue, JobRequest(name, "train", (replace(one, commands=(
                (*shell(f"touch {here}/ran-$0"), name),)),)))
            for name in ("wait", "wait-2")
        ]  # fmt: skip
        eventually(lambda: waits[0].status.waits not in ("", f"for {backend.dialect.title}: "))  # type: ignore[attr-defined]
        assert waits[0].status.state == "queued"
        assert waits[0].status.waits.startswith(f"for {backend.dialect.title}: ")  # type: ignore[attr-defined]
        backend.cancel(waits[0].handle, waits[0].paths)
        (here / "go").touch()
        assert waits[0].ended().state == "cancelled"
        assert waits[1].ended().state == "done"
        assert not (here / "ran-wait").exists()
        assert (here / "ran-wait-2").exists()

    def test_a_scheduler_that_does_not_answer(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What runs is unknown until it answers; nothing new is submitted, and nothing twice."""
        here = queue.folder
        stage = Stage("train", (shell(f"until [ -e {here}/go ]; do sleep 0.1; done"),))
        run = Run(backend, queue, JobRequest("long", "train", (stage,)))
        eventually(lambda: run.status.state == "running")
        monkeypatch.setattr(commands, "PATIENCE_S", 1.0)
        for how in ("hang", "refuse"):
            self.running.silence(how)
            assert run.status.state == "unknown", run.status
            with pytest.raises(JobFailed, match=f"job new-{how}: "):
                Run(backend, queue, JobRequest(f"new-{how}", "train", (stage,)))
        self.running.silence()
        monkeypatch.undo()
        for name, value in self.running.items():
            monkeypatch.setenv(name, value)
        assert run.status.state == "running", run.status
        (here / "go").touch()
        assert run.ended().state == "done"

    def test_a_submission_that_is_refused(self, backend: Backend, queue: JobQueue) -> None:
        """In the scheduler's words; of its stages none stays in the queue."""
        settings = queue.folder / "backends.toml"
        settings.write_text(f"[{self.name}]\nqueue = 'none-such'\n")
        stage = Stage("train", (shell("true"),))
        with pytest.raises(JobFailed, match=r"(?i)\bqueue\b"):
            Run(backend, replace(queue, backends=settings), JobRequest("no", "train", (stage,)))
        assert self.running.tasks() == []

    def test_an_end_that_nobody_remembers(self, backend: Backend, queue: JobQueue) -> None:
        """What scripts wrote stays known; a job that wrote nothing is lost."""
        run = Run(backend, queue, JobRequest("ends", "train", (Stage("one", (shell(":"),)),)))
        assert run.ended().state == "done"
        self.running.forget()
        assert run.status.state == "done"
        for note in (run.paths.folder / self.name / run.name).glob("*.json"):
            note.unlink()
        status = run.status
        assert (status.state, status.is_lost) == ("failed", True)
        assert "ended job " in status.error


@pytest.mark.wide
class TestLsf(BatchSuite):
    """A stand-in of LSF 10.1."""

    name = "lsf"
    kill = ("bkill", "-s", "KILL")

    @pytest.fixture
    def cluster(self, tmp_path: Path) -> Iterator[StandIn]:
        """Two hosts of two slots."""
        with lsf_stand_in(tmp_path / "lsf", terminate_interval_s=0.5) as running:
            yield running

    @pytest.fixture
    def backend(self) -> Backend:
        """LSF's."""
        return LsfBackend()


@pytest.mark.wide
class TestPbs(BatchSuite):
    """A stand-in of OpenPBS 20."""

    name = "pbs"
    kill = ("qsig", "-s", "KILL")

    @pytest.fixture
    def cluster(self, tmp_path: Path) -> Iterator[StandIn]:
        """Two hosts of two slots."""
        with pbs_stand_in(tmp_path / "pbs", kill_delay_s=0.5) as running:
            yield running

    @pytest.fixture
    def backend(self) -> Backend:
        """PBS's."""
        return PbsBackend()


TRAIN = Stage("train", ((PYTHON, "-m", "training.main", "it's"),), ranks=5)
SHARDS = Stage("validate", tuple(("echo", str(n)) for n in range(4)), independent=True)
EXPORT = Stage("export", (("echo", "export"),), optional=True, uses_gpus=False)
WHOLE = JobRequest(
    "job", "train", (EXPORT, TRAIN, SHARDS), {"QUIET": "1 2"}, parallel=2, attempt=2, user="anna",
    resources=Resources(ranks=5, ranks_per_node=2, gpus=1, wall_minutes=90, memory_mb=4000),
)  # fmt: skip


def command_lines(backend: Backend, folder: Path, settings: str, request: JobRequest) -> list[str]:
    """Command lines that would submit a job."""
    (folder / "backends.toml").write_text(settings)
    queue = JobQueue(Path("/home/jobs"), backends=folder / "backends.toml", user=request.user)
    backend.check(request.resources, queue)
    said = backend.describe(request, JobPaths(Path("/home/jobs/job")), queue, "name-2")
    return [line for line in said.splitlines() if line.startswith(("bsub ", "qsub "))]


def test_a_submission_to_lsf(tmp_path: Path) -> None:
    """Word for word: slots for all ranks, GPUs of each task, each stage after the one before."""
    lines = command_lines(
        LsfBackend(), tmp_path,
        "[lsf]\nqueue = 'gpu'\naccount = 'lab'\ngroup = 'ml'\napplication = 'train'\n", WHOLE,
    )  # fmt: skip
    common = (
        "-cwd /home/jobs/job -o /dev/null -q gpu -P lab -G ml -app train "
        "-Jd 'framesift user anna' -n"
    )
    memory = "-R 'rusage[mem=4000MB/host]'"
    assert lines == [
        f"bsub -J name-2 {common} 1 {memory} -W 90 -H -r",
        (
            f"bsub -J name-2 {common} 5 -R 'span[ptile=2]' {memory} "
            "-gpu num=1/task:j_exclusive=yes -W 90 -H -r -w 'ended(JOB1)' -ti"
        ),
        (
            f"bsub -J 'name-2[1-4]%2' {common} 1 {memory} -gpu num=1/task:j_exclusive=yes "
            "-W 90 -H -r -w 'done(JOB2)' -ti"
        ),
    ]


def test_a_submission_to_pbs(tmp_path: Path) -> None:
    """Word for word: a chunk for each node, the last with the ranks that remain."""
    lines = command_lines(
        PbsBackend(), tmp_path, "[pbs]\nqueue = 'gpu'\naccount = 'lab'\nplace = 'excl'\n", WHOLE
    )
    common = "-N name-2 -S /bin/bash -o /dev/null -e /dev/null -q gpu -A lab"
    one = "ncpus=1:mpiprocs=1:ngpus=1:mem=4000mb"
    two = "ncpus=2:mpiprocs=2:ngpus=2:mem=4000mb"
    end = "-l walltime=01:30:00"
    assert lines == [
        (
            f"qsub {common} -l select=1:ncpus=1:mpiprocs=1:mem=4000mb -l place=pack:excl {end} "
            "-r y -m n -h"
        ),
        (
            f"qsub {common} -l select=2:{two}+1:{one} -l place=scatter:excl {end} -r y -m n "
            "-W depend=afterany:JOB1 -h"
        ),
        (
            f"qsub {common} -l select=1:{one} -l place=pack:excl {end} -J 0-3%2 -r y -m n "
            "-W depend=afterok:JOB2 -h"
        ),
    ]


@pytest.mark.parametrize(
    ("backend", "launcher", "words"),
    [
        (LsfBackend, "mpirun", "mpirun -np 5 -npernode 2 --bind-to none -x PATH"),
        (PbsBackend, "mpirun", "mpirun -np 5 -npernode 2 --bind-to none -x PATH"),
        (
            LsfBackend, "jsrun",
            "jsrun --np 5 --rs_per_host 2 --tasks_per_rs 1 --cpu_per_rs 1 --gpu_per_rs 1",
        ),
    ],
)  # fmt: skip
def test_other_launchers(tmp_path: Path, backend: type[Backend], launcher: str, words: str) -> None:
    """They start Horovod's programs alone; a program of the user's has ranks as everywhere."""
    file = tmp_path / "backends.toml"
    name = backend().name
    file.write_text(f"[{name}]\nlauncher = '{launcher}'\n")
    queue = JobQueue(tmp_path, backends=file)
    paths = JobPaths(tmp_path / "job")
    said = backend().describe(replace(WHOLE, stages=(TRAIN,)), paths, queue, "n")
    assert f"0) set -- {words} " in said
    ranks = replace(WHOLE, stages=(replace(TRAIN, launcher="ranks"),))
    said = backend().describe(ranks, paths, queue, "n")
    assert f"set -- {launcher} " not in said
    assert "training.node_tasks" in said
    launched = replace(WHOLE, stages=(replace(TRAIN, launcher="torchrun"),))
    assert " 5 launcher:2 " in backend().describe(launched, paths, queue, "n")


def test_a_host_for_each_node_of_pbs(tmp_path: Path) -> None:
    """Named hosts stand in the chunks; too few are refused."""
    resources = Resources(ranks=2, ranks_per_node=1, nodes="n1,n2", constraint="model=a100")
    request = replace(WHOLE, stages=(replace(TRAIN, ranks=2),), resources=resources)
    (line,) = command_lines(PbsBackend(), tmp_path, "", request)
    chunk = "1:ncpus=1:mpiprocs=1:model=a100:host="
    assert f"select={chunk}n1+{chunk}n2" in shlex.split(line)
    few = replace(resources, nodes="n1")
    with pytest.raises(InvalidInput, match="nodes n1: 1 hosts for 2 nodes; name as many"):
        command_lines(PbsBackend(), tmp_path, "", replace(request, resources=few))


@pytest.mark.parametrize("backend", [LsfBackend, PbsBackend])
def test_a_launcher_that_is_none(tmp_path: Path, backend: type[Backend]) -> None:
    """It is refused with those that there are."""
    name = backend().name
    with pytest.raises(InvalidInput, match=r"launcher = 'srun': expected .*mpirun"):
        command_lines(backend(), tmp_path, f"[{name}]\nlauncher = 'srun'\n", WHOLE)


@pytest.mark.parametrize("backend", [SlurmBackend, LsfBackend, PbsBackend])
def test_settings_of_the_pages(tmp_path: Path, backend: type[Backend]) -> None:
    """Each backend's page has a table that works."""
    name = backend().name
    page = Path(__file__).parents[2] / "docs" / f"{name}.md"
    (table,) = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert table.startswith(f"[{name}]\n")
    file = tmp_path / "backends.toml"
    file.write_text(table)
    backend().check(WHOLE.resources, JobQueue(tmp_path, backends=file))


def test_more_shards_than_an_array_has(tmp_path: Path) -> None:
    """LSF's default, and a site's own number, are told before anything is submitted."""
    queue = JobQueue(tmp_path, backends=tmp_path / "backends.toml")
    LsfBackend().check(Resources(ranks=1000), queue)
    with pytest.raises(InvalidInput, match=r"workers 1,001: a job on lsf may have at most 1,000"):
        LsfBackend().check(Resources(ranks=1001), queue)
    (tmp_path / "backends.toml").write_text("[lsf]\nmost_ranks = 5\n[pbs]\nmost_ranks = 6\n")
    for backend, most in ((LsfBackend(), 5), (PbsBackend(), 6)):
        with pytest.raises(InvalidInput, match=f"at most {most}; .* have most_ranks of"):
            backend.check(Resources(ranks=7), queue)


def test_an_option_that_says_what_the_site_says(tmp_path: Path) -> None:
    """It is allowed; another value of a setting that is the site's own is not."""
    queue = JobQueue(tmp_path, backends=tmp_path / "backends.toml")
    (tmp_path / "backends.toml").write_text("[lsf]\npython = '/opt/python'\nlauncher = 'jsrun'\n")
    LsfBackend().check(Resources(options={"python": "/opt/python"}), queue)
    for name, value in (("python", "/opt/python2"), ("launcher", "mpirun"), ("image", "")):
        with pytest.raises(UnknownName, match=rf"lsf\.{name}"):
            LsfBackend().check(Resources(options={name: value}), queue)
