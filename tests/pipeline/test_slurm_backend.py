"""The backend slurm, against a real Slurm."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from catalog.errors import InvalidInput, JobFailed
from pipeline.cache.beat import Watch
from pipeline.cache.lease import held_leases
from pipeline.jobs.backends.batch import commands
from pipeline.jobs.backends.batch.standing import Handle
from pipeline.jobs.backends.interface import Backend
from pipeline.jobs.backends.slurm.backend import SlurmBackend
from pipeline.jobs.backends.slurm.dialect import SlurmDialect
from pipeline.jobs.backends.slurm.settings import slurm_settings
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage
from pipeline.jobs.resources import Resources
from pipeline.runs.prediction_set import prediction_name
from tests.pipeline.backend_suite import (
    BackendSuite,
    Run,
    called,
    cut_the_power,
    eventually,
    fill_the_disk,
    shell,
    torchrun_request,
)
from tests.pipeline.cached import stage as stage_files
from tests.slurm_cluster import slurm_cluster
from tests.training.drawn_frames import HEIGHT_PX, WIDTH_PX
from tests.training.drawn_home import ask, drawn_home


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """A Slurm of two nodes; its slurm.conf."""
    with slurm_cluster(nodes=2, cpus=2) as config:
        yield config


_AFTER_REQUEUE_S = 15


def hurry(number: str) -> None:
    """Have a job that went back into the queue begin: Slurm lets it wait for two minutes."""
    # Slurm 22.05 fails a job that begins within a second of its requeue: "Job credential revoked".
    begin = ["scontrol", "update", f"JobId={number}", f"StartTime=now+{_AFTER_REQUEUE_S}"]
    show = ["scontrol", "show", "job", number]

    def is_back() -> bool:
        said = subprocess.run(show, check=False, capture_output=True, text=True).stdout
        return "Restarts=1" in said and "JobState=PENDING" in said

    eventually(is_back)
    subprocess.run(begin, check=True)


def line_of(words: str) -> str:
    """A Python program that prints words in one write: ranks share a log, and may be unbuffered."""
    return f"import os, sys; sys.stdout.write(' '.join({words}) + '\\n')"


@pytest.mark.slurm
class TestSlurm(BackendSuite):
    """What all backends do, and what only a scheduler does."""

    @pytest.fixture
    def backend(self, cluster: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
        """The cluster."""
        monkeypatch.setenv("SLURM_CONF", str(cluster))
        return SlurmBackend()

    def lose(self, run: Run) -> None:
        """An administrator kills it, its script included."""
        numbers = Handle.parse(run.handle).numbers
        subprocess.run(["scancel", "--signal=KILL", "--full", *numbers], check=True)

    def test_ranks_over_nodes(self, backend: Backend, queue: JobQueue) -> None:
        """Three on two nodes know their places and where the first one is."""
        words = (
            "(os.environ[n] for n in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'FRAMESIFT_RANK', "
            "'HOROVOD_LOCAL_SIZE', 'HOROVOD_CROSS_RANK', 'MASTER_ADDR'))"
        )
        stage = Stage("train", ((PYTHON, "-c", line_of(words)),), ranks=3)
        resources = Resources(ranks=3, ranks_per_node=2, cores=1)
        run = Run(backend, queue, JobRequest("ranks", "train", (stage,), resources=resources))
        assert run.ended().state == "done", run.status
        said = [line for line in run.log("train").splitlines() if not line.startswith("srun: ")]
        assert sorted(said) == [
            "0 3 0 0 2 0 127.0.0.1", "1 3 1 1 2 0 127.0.0.1", "2 3 0 2 1 1 127.0.0.1",
        ]  # fmt: skip

    def test_torchrun_starts_once_on_each_node(self, backend: Backend, queue: JobQueue) -> None:
        """For two ranks on one node and one on the other."""
        resources = Resources(ranks=3, ranks_per_node=2, cores=1)
        run = Run(backend, queue, torchrun_request(queue.folder, "launched", resources))
        assert run.ended().state == "done", run.status
        lines = [line for line in run.log("run").splitlines() if not line.startswith("srun: ")]
        first, second = sorted(map(called, lines), key=lambda told: told["by"].split()[1])
        assert [told["by"].split()[1] for told in (first, second)] == ["0", "2"]
        assert (first["nproc-per-node"], second["nproc-per-node"]) == ("2", "1")
        assert (first["rdzv-conf"], second["rdzv-conf"]) == ("is_host=true", "is_host=false")
        assert first["rdzv-endpoint"] == second["rdzv-endpoint"]
        assert (second["nnodes"], second["rdzv-id"]) == ("2", "launched-1")

    def test_a_rank_that_dies(self, backend: Backend, queue: JobQueue) -> None:
        """It ends the other one, on another node, and the job has failed with its words."""
        program = (
            "import os, sys, time\n"
            "if os.environ['HOROVOD_RANK'] == '1': sys.exit('error: no GPU here')\n"
            "time.sleep(600)\n"
        )
        resources = Resources(ranks=2, ranks_per_node=1)
        stage = Stage("train", ((PYTHON, "-c", program),), ranks=2)
        run = Run(backend, queue, JobRequest("dies", "train", (stage,), resources=resources))
        assert run.ended().error.startswith("no GPU here (train 0, log ")

    def test_a_turn_that_ends_goes_on_in_the_next(self, backend: Backend, queue: JobQueue) -> None:
        """What Slurm sends before the wall time ends: a checkpoint, and back into the queue."""
        here = queue.folder
        script = (
            f"trap 'touch {here}/kept; exit 1' TERM; [ ! -e {here}/kept ] || exit 0; "
            f"touch {here}/works; while :; do sleep 0.1; done"
        )
        resources = Resources(wall_minutes=60)
        stage = Stage("train", (shell(script),))
        run = Run(backend, queue, JobRequest("turns", "train", (stage,), resources=resources))
        eventually((here / "works").exists)
        (number,) = Handle.parse(run.handle).numbers
        subprocess.run(["scancel", "--signal=USR1", "--batch", number], check=True)
        eventually((here / "kept").exists)
        hurry(number)
        assert run.ended().state == "done", run.status
        assert run.log("train").endswith("==> turn 2 <==\n")

    def test_a_program_that_does_not_end_in_time(self, backend: Backend, queue: JobQueue) -> None:
        """It is killed, its children too; its job has failed with its turn, or is cancelled."""
        here = queue.folder
        settings = here / "backends.toml"
        settings.write_text("[slurm]\ncheckpoint_seconds = 1\n")
        script = f"trap '' TERM; touch {here}/$0-works; while :; do sleep 0.1; done"
        for name in ("wall", "cancel"):
            stage = Stage("train", (("/bin/sh", "-c", script, name),))
            request = JobRequest(name, "train", (stage,), resources=Resources(wall_minutes=60))
            run = Run(backend, replace(queue, backends=settings), request)
            eventually((here / f"{name}-works").exists)
            if name == "cancel":
                backend.cancel(run.handle, run.paths)
                assert run.ended().state == "cancelled"
                continue
            numbers = Handle.parse(run.handle).numbers
            subprocess.run(["scancel", "--signal=USR1", "--batch", *numbers], check=True)
            status = run.ended()
            assert (status.state, status.is_lost) == ("failed", True)
            assert "train 0 was ended before its wall time did, without a ch" in status.error

    def test_a_full_disk(self, backend: Backend, queue: JobQueue) -> None:
        """The script says how its program ended over what it said when it began."""
        fill_the_disk(backend, queue)

    def test_a_power_cut(self, backend: Backend, queue: JobQueue, tmp_path: Path) -> None:
        """The script says that it is done once all is on the disk."""
        cut_the_power(backend, queue, tmp_path)

    def test_what_a_job_reads_is_held(
        self, backend: Backend, queue: JobQueue, tmp_path: Path
    ) -> None:
        """From the node, as long as its script runs; what was evicted before is named."""
        cache, here = tmp_path / "cache", queue.folder
        manifest = stage_files(cache, "streets", ["1.png"])
        wait = f"touch {here}/began; until [ -e {here}/go ]; do sleep 0.1; done"
        stages = (Stage("train", (shell(wait),)),)
        request = JobRequest("reader", "train", stages, reads={str(manifest): "streets@1"})
        run = Run(backend, queue, request)
        eventually((here / "began").exists)
        assert [lease.holder.job for lease in held_leases(cache, Watch())] == ["reader"]
        (here / "go").touch()
        assert run.ended().state == "done", run.status
        eventually(lambda: not held_leases(cache, Watch()))
        gone = {str(cache / ".manifests" / "gone-v1-0"): "streets@2"}
        run = Run(backend, queue, replace(request, name="late", reads=gone))
        assert "was evicted from the cache before the job began" in run.ended().error

    def test_a_submitter_that_is_killed(
        self, backend: Backend, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before it kept the numbers, nothing of it ever runs; after that, it runs once."""
        stages = tuple(Stage(title, (shell("echo once"),)) for title in ("one", "two"))
        request = JobRequest("cut", "train", stages)
        paths, name = JobPaths(queue.folder / "cut"), "framesift-cut-off"
        kept = paths.folder / "slurm" / name / "handle"

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(SlurmDialect, "release", killed)
            with pytest.raises(KeyboardInterrupt):
                Run(backend, queue, request, name)
        kept.unlink()
        assert len(SlurmDialect().numbers_of(name, os.environ)) == 2
        assert backend.find(name, paths) is None
        rows = SlurmDialect().rows(SlurmDialect().numbers_of(name, os.environ), os.environ)
        assert {row.state for row in rows.values()} == {"CANCELLED"}
        with monkeypatch.context() as patch:
            patch.setattr(SlurmDialect, "release", killed)
            with pytest.raises(KeyboardInterrupt):
                Run(backend, queue, request, name)
        handle = backend.find(name, paths)
        assert handle == kept.read_text()
        eventually(lambda: backend.statuses({handle: paths})[handle].state == "done")
        assert [paths.log(title, 0).read_text() for title in ("one", "two")] == ["once\n"] * 2

    @pytest.mark.parametrize("way", ["outside-in", "inside-out"])
    def test_containers(self, backend: Backend, queue: JobQueue, tmp_path: Path, way: str) -> None:
        """Both ways: who starts whom. The program that runs images here only says that it does."""
        apptainer = tmp_path / "apptainer"
        apptainer.write_text(
            f"#!/bin/sh\necho run >> {tmp_path}/runs\n"
            '[ "$1" = exec ] || exit 9; shift\n'
            '[ "$1" = --env ] || exit 8; export MINE="$2"; shift 2\n'
            'while [ "$1" = --bind ]; do shift 2; done\n'
            'export IMAGE="$1"; shift; exec "$@"\n'
        )
        apptainer.chmod(0o755)
        (tmp_path / "backends.toml").write_text(
            f"[slurm]\napptainer = '{apptainer}'\nimage = '/images/train it.sif'\n"
            f"python = '{sys.executable}'\ncontainer = '{way}'\n"
            "container_arguments = ['--env', 'a $HOME b']\n"
        )
        words = "[os.environ[n] for n in ('RANK', 'IMAGE', 'MINE')] + [sys.argv[1]]"
        stage = Stage("train", ((PYTHON, "-c", line_of(words), "/data/x"),), ranks=2)
        resources = Resources(ranks=2, ranks_per_node=2, mounts={"/data": "/in/side"})
        request = JobRequest("inside", "train", (stage,), resources=resources)
        run = Run(backend, replace(queue, backends=tmp_path / "backends.toml"), request)
        assert run.ended().state == "done", run.status
        assert sorted(run.log("train").splitlines()) == [
            "0 /images/train it.sif a $HOME b /in/side/x",
            "1 /images/train it.sif a $HOME b /in/side/x",
        ]  # fmt: skip
        starts = (tmp_path / "runs").read_text().split()
        assert len(starts) == (1 if way == "inside-out" else 2)

    def test_lines_before_each_program(
        self, backend: Backend, queue: JobQueue, tmp_path: Path
    ) -> None:
        """They act on the programs, ranks too, as in a shell; one that fails fails the job."""
        file = tmp_path / "backends.toml"
        queue = replace(queue, backends=file)
        file.write_text(
            """[slurm]\nsetup = ["module() { export $1=\\"$2\\"; }", "module GIVEN 'a  b'", """
            """"cd /; [ -d tmp ]", "export LAST=$GIVEN$#", "set -eu; code=7 note=x FOLDER=y"]\n"""
        )
        words = "[os.environ['RANK'], os.environ['LAST'], os.getcwd()]"
        stage = Stage("train", ((PYTHON, "-c", line_of(words)),), ranks=2)
        resources = Resources(ranks=2, ranks_per_node=1)
        run = Run(backend, queue, JobRequest("lines", "train", (stage,), resources=resources))
        assert run.ended().state == "done", run.status
        assert sorted(run.log("train").splitlines()) == ["0 a  b0 /", "1 a  b0 /"]
        file.write_text("[slurm]\nsetup = ['true', 'ls /no/such', 'touch later']\n")
        stage = Stage("train", (shell("touch begun"),))
        run = Run(backend, queue, JobRequest("stops", "train", (stage,)))
        assert run.ended().error.startswith(
            "setup of backends.toml, line 'ls /no/such': exit code 2 (train 0, log /"
        )
        file.write_text("[slurm]\nsetup = ['exit 0']\n")
        leaves = Run(backend, queue, JobRequest("leaves", "train", (stage,)))
        assert leaves.ended().error.startswith("setup of backends.toml ended its shell (train 0, ")
        file.write_text(f"[slurm]\nsetup = ['touch {tmp_path}/waits; sleep 600']\n")
        stage = Stage("train", (shell("touch begun"),), ranks=2)
        waits = Run(backend, queue, JobRequest("waits", "train", (stage,), resources=resources))
        eventually((tmp_path / "waits").exists)
        backend.cancel(waits.handle, waits.paths)
        assert waits.ended().state == "cancelled"
        assert {"begun", "later"} & {path.name for path in run.paths.folder.iterdir()} == set()


JOB = JobRequest("job", "train", (Stage("train", (("echo", "x"),), ranks=4),))


def described(queue: JobQueue, settings: str = "", **asked: Any) -> str:
    """What would be submitted of a job that asks for this."""
    queue = replace(queue, backends=queue.folder / "backends.toml")
    (queue.folder / "backends.toml").write_text(settings)
    request = replace(JOB, resources=Resources.from_json({"ranks": 4, **asked}))
    SlurmBackend().check(request.resources, queue)
    return SlurmBackend().describe(request, JobPaths(queue.folder / "job"), queue, "name")


def test_resources_are_flags_of_sbatch(tmp_path: Path) -> None:
    """Each one, quoted; settings of the file, and what a job asks instead of them."""
    settings = "[slurm]\npartition = 'cpu'\naccount = 'lab'\nlauncher = 'mpirun'\n"
    said = described(
        JobQueue(tmp_path), settings,
        ranks_per_node=2, gpus=1, cores=3, memory_mb=4000, wall_minutes=90, nodes="n[1-2]",
        constraint="a100&nvme; rm -rf /", options={"partition": "gpu"},
    )  # fmt: skip
    line = said.splitlines()[0]
    for flag in (
        "--partition=gpu", "--account=lab", "--ntasks=4", "--ntasks-per-node=2", "--gres=gpu:2",
        "--cpus-per-task=3", "--mem=4000M", "--time=90", "--signal=B:USR1@120", "--requeue",
        "'--nodelist=n[1-2]'", "'--constraint=a100&nvme; rm -rf /'", "--kill-on-invalid-dep=yes",
    ):  # fmt: skip
        assert flag in shlex.join(shlex.split(line)), flag
    assert "0) set -- mpirun -np 4 -npernode 2 --bind-to none -x PATH echo x ;;" in said
    said = described(JobQueue(tmp_path), "[slurm]\nlauncher = 'horovodrun'\n")
    assert '0) set -- horovodrun -np 4 -H "$hosts" --gloo echo x ;;' in said


@pytest.mark.slurm
def test_predictions_are_scored_by_an_array(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three shards on Slurm make the report that one process here makes, digit by digit."""
    monkeypatch.setenv("SLURM_CONF", str(cluster))
    home, place = drawn_home(tmp_path, 5), tmp_path / "predicted"
    for number, row in enumerate(ask(home, "select")["frames"]):
        path = place / prediction_name(row["fkey"])
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((HEIGHT_PX, WIDTH_PX), number % 3, np.uint8)).save(path)
    reports = {}
    for name, backend, workers in (("there", "slurm", 3), ("here", "local", 1)):
        job = ask(
            home, "validate", "few", "--predictions", str(place), "--model-name", "m", "--name",
            name, "--named-by", "fkey", "--backend", backend, "--workers", str(workers),
        )  # fmt: skip
        assert (job["state"], job["backend"]) == ("done", backend)
        reports[name] = json.loads(Path(job["paths"]["report"]).read_text())
        assert (reports[name].pop("shards"), reports[name]["model"].pop("dir")) == (
            workers, str(home / "jobs" / name / "predictions" / "m"),
        )  # fmt: skip
    assert reports["there"] == reports["here"]
    assert reports["here"]["frames"] == 5


SHARDS = Stage("validate", tuple(("echo", str(n)) for n in range(4)), independent=True)
EXPORT = Stage("export", (("echo", "export"),), optional=True, uses_gpus=False)
MERGE = Stage("merge", (("echo", "merge"),), uses_gpus=False)


def test_stages_follow_each_other(tmp_path: Path) -> None:
    """Each after the end of the one before; only one that may fail is followed whatever came."""
    stages = (EXPORT, SHARDS, MERGE)
    request = JobRequest("job", "validate", stages, parallel=4)

    def lines(request: JobRequest) -> list[list[str]]:
        said = SlurmBackend().describe(request, JobPaths(tmp_path), JobQueue(tmp_path), "name")
        return [shlex.split(line) for line in said.splitlines() if line.startswith("sbatch ")]

    export, shards, merge = lines(request)
    assert [word for word in export if word.startswith(("--array", "--dependency"))] == []
    assert [word for word in shards if word.startswith(("--array", "--dependency"))] == [
        "--array=0-3", "--dependency=afterany:JOB1",
    ]  # fmt: skip
    assert [word for word in merge if word.startswith(("--array", "--dependency"))] == [
        "--dependency=afterok:JOB2"
    ]
    _, shards, _ = lines(replace(request, parallel=2))
    assert "--array=0-3%2" in shards


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the command lines of Slurm's programs, which here only say that they do."""
    file = tmp_path / "asked"
    (tmp_path / "bin").mkdir()
    for name in ("sbatch", "squeue", "scontrol", "scancel", "sacct"):
        program = tmp_path / "bin" / name
        number = f"grep -c ^sbatch {file}" if name == "sbatch" else ":"
        program.write_text(f'#!/bin/sh\necho "{name} $* $SLURM_CONF" >> {file}\n{number}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_CONF", "/driver.conf")
    return file


def test_what_is_asked_of_slurm(asked: Path, tmp_path: Path) -> None:
    """All on hold, then released; a cancel ends what waits, and signals what runs.

    Each command asks the cluster of the job's submitter, and not that of the process that asks.
    """
    backend, queue = SlurmBackend(), JobQueue(tmp_path / "jobs")
    request = JobRequest("job", "validate", (SHARDS, MERGE), parallel=4)
    handles, path = {}, {"PATH": os.environ["PATH"]}
    for name, submitted in (
        ("job", {**path, "SLURM_CONF": "/my.conf"}), ("job-2", path), ("job-3", None),
    ):  # fmt: skip
        paths = JobPaths(queue.folder / name)
        paths.folder.mkdir(parents=True)
        handles[name] = backend.submit(replace(request, submitted=submitted), paths, queue, name)
    assert handles == {"job": "job:1,2", "job-2": "job-2:3,4", "job-3": "job-3:5,6"}
    lines = asked.read_text().splitlines()
    assert all("--hold" in line for line in lines if line.startswith("sbatch "))
    assert [line for line in lines if line.startswith("scontrol ")] == [
        "scontrol release 1,2 /my.conf", "scontrol release 3,4 ",
        "scontrol release 5,6 /driver.conf",
    ]  # fmt: skip
    asked.unlink()
    backend.cancel(handles["job"], JobPaths(queue.folder / "job"))
    assert asked.read_text().splitlines() == [
        "scancel --quiet --state=PENDING 1 2 /my.conf",
        "scancel --quiet --signal=USR1 --batch --state=RUNNING 1 2 /my.conf",
    ]
    asked.unlink()
    backend.statuses({handles[name]: JobPaths(queue.folder / name) for name in handles})
    asks = [line for line in asked.read_text().splitlines() if line.startswith("squeue ")]
    assert sorted(" ".join(line.split()[-2:]) for line in asks) == [
        "--format=%F|%K|%T|%r --jobs=3,4", "--jobs=1,2 /my.conf", "--jobs=5,6 /driver.conf",
    ]  # fmt: skip


GOLDEN = Path(__file__).with_name("described_on_slurm.txt")


def test_a_whole_submission(tmp_path: Path) -> None:
    """Flags and scripts word for word, with every setting that a site has.

    Where a change is meant, the test's own failure shows the text that the file is to have.
    """
    settings = tmp_path / "backends.toml"
    settings.write_text(
        """[slurm]
partition = 'gpu'
python = '/opt/framesift/bin/python'
launcher = 'mpirun'
mpirun_arguments = ['--mca', 'btl_tcp_if_include', 'ib 0']
image = '/images/train.sif'
container_arguments = ['--rocm', '--env', 'A=b c']
setup = ['module load cuda', "export WHO='me; rm -rf /'"]
"""
    )
    train = Stage("train", ((PYTHON, "-m", "training.main", "it's"),), ranks=4)
    request = JobRequest(
        "job", "train", (EXPORT, train, SHARDS), {"QUIET": "1 2"}, parallel=2, attempt=2,
        user="anna", resources=Resources(ranks=4, ranks_per_node=2, gpus=1, wall_minutes=90),
    )  # fmt: skip
    queue = JobQueue(Path("/home/jobs"), backends=settings)
    said = SlurmBackend().describe(request, JobPaths(Path("/home/jobs/job")), queue, "name-2")
    text = (Path(commands.__file__).parent / "stage.sh").read_text()
    fixed = (
        text.replace("# DIALECT\n", SlurmDialect.words)
        .partition("# WORDS\n")[2]
        .partition("# COMMANDS\n")
    )
    for part in (fixed[0], fixed[2]):
        said = said.replace(part, "[...]\n")
    assert said == GOLDEN.read_text()


def test_whose_account_a_job_runs_on(tmp_path: Path) -> None:
    """A user's own as the file says, and no other; whose job it is stands in Slurm's comment."""
    file = tmp_path / "backends.toml"
    file.write_text("[slurm]\naccount = 'all'\naccounts = ['anna=lab=1', 'otto=lab2']\n")

    def account(user: str, **options: str) -> str:
        return slurm_settings(file, Resources(options=options), user).account

    assert [account(user) for user in ("anna", "otto", "eve", "")] == [
        "lab=1",
        "lab2",
        "all",
        "all",
    ]
    assert account("eve", account="hers") == "hers"
    assert account("otto", account="lab2") == "lab2"
    with pytest.raises(InvalidInput, match="jobs of user 'otto' run on account lab2; leave it out"):
        account("otto", account="all")
    queue = JobQueue(tmp_path, backends=file, user="o'to; x")
    request = replace(JOB, user=queue.user)
    line = SlurmBackend().describe(request, JobPaths(tmp_path / "job"), queue, "name")
    assert "--comment=framesift user o'to; x" in shlex.split(line.splitlines()[0])


@pytest.mark.parametrize(
    ("settings", "asked", "words"),
    [
        ("[slurm]\npartitoin = 'a'", {}, "unknown setting 'partitoin': did you mean partition"),
        ("[slurm]\nmost_ranks = '4'", {}, "most_ranks = '4': expected a whole number"),
        ("[slurm]\nsetup = 'a'", {}, "setup = 'a': expected a list of texts"),
        ("[slurm]\nmpirun_arguments = ['-v']", {}, "goes with launcher = 'mpirun', not 'srun'"),
        ("", {"options": {"setup": "touch x"}}, "unknown option 'slurm.setup'"),
        ("[slurm]\nimages = 'a'", {}, "images = 'a': expected a list of texts"),
        ("slurm = 3", {}, r"slurm: expected a table, \[slurm\]"),
        ("[slurm", {}, "cannot be read as TOML"),
        ("[slurm]\nlauncher = 'ssh'", {}, "expected srun, mpirun or horovodrun"),
        ("", {"options": {"python": "/tmp/mine"}}, "unknown option 'slurm.python'"),
        ("", {"image": "/tmp/mine.sif"}, "image /tmp/mine.sif: expected one that"),
        ("", {"mounts": {"/a": "/b"}}, "mounts: go with an image"),
        ("[slurm]\nimage = 'i'", {"mounts": {"/a:b": "/b"}}, "expected two absolute paths"),
        ("", {"wall_minutes": 2}, "expected more than the 120 s"),
        ("[slurm]\naccounts = ['anna']", {}, "expected 'USER=ACCOUNT' each"),
        ("[slurm]\nmost_ranks = 3", {}, "workers 4: a job on slurm may have at most 3"),
    ],
)
def test_settings_that_cannot_be_used(
    tmp_path: Path, settings: str, asked: dict[str, Any], words: str
) -> None:
    """Each is named with what was expected, before anything is submitted."""
    with pytest.raises(InvalidInput, match=words):
        described(JobQueue(tmp_path), settings, **asked)


@pytest.mark.parametrize(
    ("command", "does", "words"),
    [
        ("squeue", "sleep 60", "squeue did not answer within"),
        ("squeue", "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1", "Unable to"),
        ("squeue", "head -c 3000 /dev/urandom", "squeue printed"),
        ("squeue", "echo '12|N/A|RUN'; echo '12|'", "squeue printed 12|: expected JOB"),
        ("sbatch", "sleep 60", "sbatch did not answer within"),
        ("sbatch", "echo 'Submitted batch job 7'", "and no job number"),
        ("sbatch", "echo 'sbatch: error: invalid partition: x' >&2; exit 1", "invalid partition"),
        ("sbatch", "exit 3", "sbatch refuses: exit code 3"),
        ("scancel", "sleep 60", "scancel did not answer within"),
    ],
)
def test_commands_of_a_scheduler_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, does: str, words: str
) -> None:
    """A state nobody knows is unknown, and not an end; a job that is refused has failed."""
    monkeypatch.setattr(commands, "PATIENCE_S", 0.3)
    (tmp_path / "bin").mkdir()
    for name, script in {
        "sbatch": "echo 12", "squeue": "echo '12|N/A|RUNNING|None'", "scontrol": ":",
        "scancel": ":", "sacct": "exit 1", command: does,
    }.items():  # fmt: skip
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    backend, queue = SlurmBackend(), JobQueue(tmp_path / "jobs")
    paths = JobPaths(queue.folder / "job")
    paths.folder.mkdir(parents=True)
    if command == "sbatch":
        with pytest.raises(JobFailed, match=words):
            backend.submit(JOB, paths, queue, "name")
        return
    handle = backend.submit(JOB, paths, queue, "name")
    if command == "scancel":
        with pytest.raises(JobFailed, match=words):
            backend.cancel(handle, paths)
        return
    status = backend.statuses({handle: paths})[handle]
    assert status.state == "unknown"
    assert words in status.error
    note = paths.folder / "slurm" / "name" / "train-0.json"
    times = '"started": "2026-01-02T03:04:05.678", "finished": "2026-01-02T03:05:05.678"'
    note.write_text(f'{{{times}, "code": 0, "end": ""}}\n')  # what is known needs no scheduler
    assert backend.statuses({handle: paths})[handle].state == "done"
