"""What every backend does alike: a class of tests that each backend's own inherits."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.interface import Backend, JobStatus
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage
from pipeline.jobs.resources import Resources
from tests.disks import disk, small_disk

HOSTILE = (
    "a b", "$(touch evil)", "`touch evil`", "; touch evil #", "'", '"', "\\", "line\nbreak",
    "--flag=$HOME", "-n", "*", "", "${IFS}", "&& touch evil", "> evil", "é€", "%d %s",
)  # fmt: skip
SECRETS = ("AWS_SECRET_ACCESS_KEY", "FRAMESIFT_CATALOG_METADATA", "SLURM_JWT", "PGPASSWORD")


def shell(script: str) -> tuple[str, ...]:
    """A command that runs a shell script."""
    return ("/bin/sh", "-c", script)


def eventually(
    condition: Callable[[], object], seconds: float = 300.0, every_s: float = 0.1
) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(every_s)


class Run:
    """A job that was handed to a backend."""

    def __init__(
        self, backend: Backend, queue: JobQueue, request: JobRequest, name: str = ""
    ) -> None:
        """Submit it."""
        self.backend, self.request = backend, request
        self.paths = JobPaths(queue.folder / request.name)
        self.paths.folder.mkdir(exist_ok=True)
        self.name = name or f"framesift-test-{os.getpid()}-{request.name}-{request.attempt}"
        self.handle = backend.submit(request, self.paths, queue, self.name)

    @property
    def status(self) -> JobStatus:
        """Where it stands."""
        return self.backend.statuses({self.handle: self.paths})[self.handle]

    def ended(self) -> JobStatus:
        """The status once it has ended."""
        # A scheduler's commands take 30 to 60 ms of CPU each time.
        eventually(lambda: self.status.state in FINISHED, every_s=0.3)
        return self.status

    def log(self, stage: str, index: int = 0) -> str:
        """Output of a command."""
        return self.paths.log(stage, index).read_text()


def torchrun_request(folder: Path, name: str, resources: Resources) -> JobRequest:
    """A job that PyTorch's launcher starts, in whose place a script says how it was called."""
    script = folder / "bin" / "torchrun"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\necho "$(hostname) $RANK $*"\n')
    script.chmod(0o755)
    here = str(folder / name)
    rank = (
        PYTHON,
        "-P",
        "-m",
        "pipeline.jobs.program.rank",
        here,
        here,
        "--torchrun",
        "--",
        "train",
    )
    stage = Stage("run", (rank,), ranks=resources.ranks, launcher="torchrun")
    path = f"{script.parent}:{os.environ['PATH']}"
    return JobRequest(name, "run", (stage,), {"PATH": path}, 1, resources=resources)


def called(line: str) -> dict[str, str]:
    """The flags of a launcher's call, by their names; what stands before them is "by"."""
    by, *flags = line.split(" --")
    told = dict(flag.split("=", 1) for flag in flags if "=" in flag)
    assert line.split(" -- ")[-1] == "train"
    return {"by": by, **told}


def fill_the_disk(backend: Backend, queue: JobQueue) -> None:
    """A job whose folder has no room any more: it has failed, not lost, and the cause is named."""
    with small_disk(queue.folder / "full", "size=200k") as folder:
        stages = (Stage("fill", (shell(f"cat /dev/zero > {folder}/big; exit 4"),)),)
        run = Run(backend, queue, JobRequest("full", "train", stages))
        status = run.ended()
        assert (status.state, status.is_lost) == ("failed", False), status
        assert status.error.startswith("fill 0 ended with exit code 4; see "), status
        assert status.error.endswith("is full: make room, then resume the job")
        assert status.finished is not None


def cut_the_power(backend: Backend, queue: JobQueue, below: Path) -> None:
    """A job that is done: its outputs have the digests of its result, metrics and logs their lines.

    Links that lead nowhere, pipes, and folders in folders are outputs' neighbours.
    """
    with disk(below) as powered:
        here = powered.folder / "cut"
        places = ProgramPaths(here)
        makes = (
            f"mkdir -p {here}/model {places.output}/deep/er && cd {places.output} && "
            "echo model > model.pt && echo model > model.pt.bak && echo deep > deep/er/file && "
            f"ln -s /nowhere link && mkfifo pipe && echo '{{}}' > {here}/model/metrics.jsonl"
        )
        collects = (PYTHON, "-P", "-m", "pipeline.jobs.program.collect", str(here))
        stages = (Stage("run", (shell(f"{makes}; echo said"),)), Stage("collect", (collects,)))
        run = Run(backend, replace(queue, folder=powered.folder), JobRequest("cut", "run", stages))
        assert run.ended().state == "done", run.status
        with powered.power_cut() as after:
            result = json.loads((after / "cut" / "result.json").read_text())
            assert [row["path"] for row in result["outputs"]] == [
                "model.pt", "model.pt.bak", "deep/er/file",
            ]  # fmt: skip
            for row in result["outputs"]:
                content = (after / "cut" / "output" / row["path"]).read_bytes()
                assert hashlib.sha256(content).hexdigest() == row["sha256"], row
            assert (after / "cut" / "model" / "metrics.jsonl").read_text() == "{}\n"
            assert JobPaths(after / "cut").log("run", 0).read_text() == "said\n"


class BackendSuite:
    """What a backend promises. Its tests give the fixtures `backend`, `queue`, and `lose`."""

    @pytest.fixture
    def queue(self, tmp_path: Path) -> JobQueue:
        """Jobs of a home, of which many may run at once."""
        (tmp_path / "jobs").mkdir()
        return JobQueue(tmp_path / "jobs", training_slots=4)

    def lose(self, run: Run) -> None:
        """Have a job that runs lose its machine, or be killed by its scheduler."""
        raise NotImplementedError

    def test_shards_then_their_merge(self, backend: Backend, queue: JobQueue) -> None:
        """All commands of a stage, then the next stage; logs of each; times; one question."""
        here = queue.folder
        shards = tuple(shell(f"echo shard {n}; echo {n} > {here}/{n}.out") for n in range(3))
        merge = shell(f"cat {here}/0.out {here}/1.out {here}/2.out")
        stages = (Stage("validate", shards, independent=True), Stage("merge", (merge,)))
        run = Run(backend, queue, JobRequest("shards", "validate", stages, parallel=3))
        other = Run(backend, queue, JobRequest("other", "train", (Stage("one", (shell(":"),)),)))
        assert run.ended() == replace(run.status, state="done", error="", waits="")
        assert [run.log("validate", index) for index in range(3)] == [
            f"shard {index}\n" for index in range(3)
        ]
        assert run.log("merge") == "0\n1\n2\n"
        status = run.status
        assert status.started is not None
        assert status.finished is not None
        assert status.started <= status.finished
        other.ended()
        both = backend.statuses({run.handle: run.paths, other.handle: other.paths})
        assert {handle: each.state for handle, each in both.items()} == {
            run.handle: "done", other.handle: "done",
        }  # fmt: skip

    def test_words_are_data_and_secrets_stay(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Arguments and variables come as they are; keys of who submits do not come at all."""
        for secret in SECRETS:
            monkeypatch.setenv(secret, "hidden")
        monkeypatch.setenv("WANDB_MODE", "offline")
        show = 'import sys, os; print(sys.argv[1:]); print(os.environ["GIVEN"]); print(os.environ)'
        stage = Stage("say", ((PYTHON, "-c", show, *HOSTILE),))
        given = "; touch evil\n$(id) 'x'"
        request = JobRequest("hostile", "train", (stage,), {"GIVEN": given})
        run = Run(backend, replace(queue, inherits=("WANDB_*",)), request)
        assert run.ended().state == "done", run.status
        said = run.log("say")
        assert said.startswith(f"{list(HOSTILE)}\n{given}\n")
        assert "'WANDB_MODE': 'offline'" in said
        assert "hidden" not in said
        assert not list(queue.folder.rglob("evil"))

    def test_a_failing_command_gives_its_own_words(self, backend: Backend, queue: JobQueue) -> None:
        """Nothing follows it; its siblings that need it not come to their end."""
        here = queue.folder
        shards = (shell("echo error: bad frame >&2; exit 1"), shell(f"touch {here}/sibling"))
        stages = (
            Stage("first", (shell("exit 7"),), optional=True),
            Stage("shards", shards, independent=True),
            Stage("merge", (shell(f"touch {here}/merged"),)),
        )
        run = Run(backend, queue, JobRequest("failing", "validate", stages, parallel=1))
        status = run.ended()
        log = run.paths.log("shards", 0)
        assert (status.state, status.error) == ("failed", f"bad frame (shards 0, log {log})")
        assert not status.is_lost
        assert (here / "sibling").exists()
        assert not (here / "merged").exists()
        silent = JobRequest("silent", "train", (Stage("only", (shell("exit 3"),)),))
        assert "only 0 ended with exit code 3; see" in Run(backend, queue, silent).ended().error
        raises = (PYTHON, "-c", "print('step 1'); raise ValueError('no \\x1b[31mclass\\x1b[0m 7')")
        tells = JobRequest("tells", "train", (Stage("only", (raises,)),))
        status = Run(backend, queue, tells).ended()
        assert "only 0 ended with exit code 1: ValueError: no class 7; see /" in status.error

    @pytest.mark.parametrize("end", ["kill -9 $$", "kill -SEGV $$", "exit 75"])
    def test_a_program_that_died_is_lost(self, backend: Backend, queue: JobQueue, end: str) -> None:
        """So another attempt follows; of one that refuses none does."""
        request = JobRequest("dying", "train", (Stage("train", (shell(end),)),))
        status = Run(backend, queue, request).ended()
        assert (status.state, status.is_lost) == ("failed", True), status

    def test_a_program_that_is_cancelled_keeps_what_it_has(
        self, backend: Backend, queue: JobQueue
    ) -> None:
        """One that hangs is asked to end; the next attempt goes on in the same folder."""
        here = queue.folder
        script = (
            f"trap 'echo kept > {here}/kept; exit 1' TERM; [ ! -e {here}/kept ] || exit 0; "
            f"touch {here}/works; while :; do sleep 0.1; done"
        )
        stages = (Stage("train", (shell(script),)), Stage("after", (shell("echo after"),)))
        request = JobRequest("hanging", "train", stages)
        run = Run(backend, queue, request)
        eventually((here / "works").exists)
        eventually(lambda: run.status.state == "running")
        backend.cancel(run.handle, run.paths)
        status = run.ended()
        assert (status.state, status.error) == ("cancelled", "cancelled")
        assert (here / "kept").read_text() == "kept\n"
        backend.cancel(run.handle, run.paths)  # nothing happens
        run.paths.cancel.unlink()
        again = Run(backend, queue, replace(request, attempt=2))
        assert again.ended().state == "done", (again.status, again.log("train"))
        assert again.log("train") == "==> attempt 2 <==\n"
        assert again.log("after") == "==> attempt 2 <==\nafter\n"

    def test_a_job_cancelled_at_once(self, backend: Backend, queue: JobQueue) -> None:
        """Whether it had begun or not."""
        stage = Stage("only", (shell("sleep 600"),))
        run = Run(backend, queue, JobRequest("early", "train", (stage, stage)))
        backend.cancel(run.handle, run.paths)
        assert run.ended().state == "cancelled"

    def test_a_job_whose_machine_is_lost(self, backend: Backend, queue: JobQueue) -> None:
        """It has failed, and not by itself; not running for ever."""
        here = queue.folder
        stage = Stage("only", (shell(f"touch {here}/works; exec sleep 600"),))
        run = Run(backend, queue, JobRequest("lost", "train", (stage,)))
        eventually((here / "works").exists)
        self.lose(run)
        status = run.ended()
        assert (status.state, status.is_lost) == ("failed", True), status

    def test_what_was_submitted_is_found_by_name(self, backend: Backend, queue: JobQueue) -> None:
        """And nothing by another name, or in another folder."""
        stage = Stage("only", (shell("echo once"),))
        run = Run(backend, queue, JobRequest("found", "train", (stage,)))
        assert backend.find(run.name, run.paths) == run.handle
        assert backend.find(f"{run.name}1", run.paths) is None
        assert backend.find(run.name, JobPaths(queue.folder / "none")) is None
        assert run.ended().state == "done"
        assert backend.find(run.name, run.paths) == run.handle
        assert run.log("only") == "once\n"

    def test_a_description_is_what_would_run(self, backend: Backend, queue: JobQueue) -> None:
        """Words of programs, stage by stage; nothing is written."""
        stages = (Stage("one", (("echo", "first word"),)), Stage("two", (("echo", "second"),)))
        paths = JobPaths(queue.folder / "described")
        said = backend.describe(JobRequest("described", "train", stages), paths, queue, "name")
        assert said.index("echo 'first word'") < said.index("echo second")
        assert not paths.folder.exists()

    def test_ranks_know_their_places(self, backend: Backend, queue: JobQueue) -> None:
        """Two processes of one program at once, each with its number and that of all."""
        here = queue.folder
        say = (
            f'cd {here}; touch "rank$FRAMESIFT_RANK"; echo "$FRAMESIFT_RANKS $GIVEN" '
            '> "of$FRAMESIFT_RANK"; until [ -e rank0 ] && [ -e rank1 ]; do sleep 0.1; done'
        )
        stage = Stage("run", (shell(say),), ranks=2, launcher="ranks")
        resources = Resources(ranks=2)
        backend.check(resources, queue)
        request = JobRequest(
            "places", "run", (stage,), {"GIVEN": "a b"}, parallel=1, resources=resources
        )
        assert Run(backend, queue, request).ended().state == "done"
        assert [(here / f"of{rank}").read_text() for rank in range(2)] == ["2 a b\n"] * 2

    def test_more_ranks_than_there_can_be(self, backend: Backend, queue: JobQueue) -> None:
        """They are refused with a number that is allowed."""
        with pytest.raises(InvalidInput, match=r"workers 1,000,000: a job .* may have at most"):
            backend.check(Resources(ranks=1_000_000), queue)
