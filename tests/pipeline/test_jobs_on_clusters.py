"""Jobs that choose and stage their frames before they run, on clusters and behind ssh."""

import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from api.schemas.new_datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput, JobFailed
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.values import now
from pipeline.job_state import FINISHED
from pipeline.jobs.backends.batch.standing import Handle
from pipeline.jobs.follow import cancel, refresh, wait
from pipeline.jobs.request import JobPaths, read_json
from query.question.label_range import LabelRange
from query.question.question import Question
from tests.api.servers import FRAMESIFT, environment, framesift
from tests.pipeline.backend_suite import eventually
from tests.pipeline.clusters import BACKENDS, cluster_of, ended_well, traces
from tests.pipeline.homes import SAMPLE, make_home, open_home
from tests.pipeline.test_slurm_backend import hurry
from tests.slurm_cluster import slurm_cluster
from tests.two_hosts import two_hosts
from training.run.metrics_log import read_metrics

COMMAND = "sh -c 'cut -f 1 {files} | xargs -n 1 head -c 4 > {job}/heads; hostname > {job}/host'"
SECRET = "a-key-that-no-job-may-see-0123456789"
CARS = Question(ranges=(LabelRange(tag="car", lowest=1),), limit=2)


def archived_home(folder: Path, home: Path) -> Workspace:
    """A home whose frames lie in a tar archive: a job has to stage them."""
    with tarfile.open(folder / "a2d2.tar", "w") as archive:
        archive.add(SAMPLE, ".")
    make_home(home, folder / "a2d2.tar")
    return open_home(home)


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    """One at a path which Slurm, a shell or DuckDB would take for something else."""
    return archived_home(tmp_path, tmp_path / "%j-run[12]*?" / "home")


@pytest.fixture
def plain_home(tmp_path: Path) -> Workspace:
    """One at a path that blaunch and pbs_tmrsh hand on as it is."""
    return archived_home(tmp_path, tmp_path / "home")


def run(
    workspace: Workspace, backend: str, dataset: str | None, question: Question | None, *steps: str
) -> None:
    """Run a program there on a dataset that is in no cache, or on a question, by these steps."""
    jobs, records = Session(workspace, is_command=True).jobs, workspace.records
    save_as = "few" if question else None
    name = jobs.run(
        dataset, COMMAND, question=question, save_as=save_as, evict=dataset is None,
        backend=backend,
    ).name  # fmt: skip
    job = wait(records, recorded_job(records, name), queue=workspace.job_queue)
    assert [(task.name, task.state) for task in job.tasks] == [(s, "done") for s in steps]
    assert (job.dataset, job.backend) == ("few@1", backend)
    output = Path(job.paths["output"])
    assert (output / "heads").read_bytes() == b"\x89PNG" * 2


@pytest.mark.wide
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_on_a_question(
    backend: str, home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home's machine chooses and fetches, a host of the cluster runs the program."""
    with cluster_of(backend, tmp_path, home.home) as cluster:
        for name, value in cluster.items():
            monkeypatch.setenv(name, value)
        run(home, backend, None, CARS, "select", "stage", "prepare", "run", "evict")
        assert ended_well(cluster)


@pytest.mark.training
@pytest.mark.parametrize(("backend", "kind"), [("lsf", "predict"), ("kubernetes", "validate")])
def test_questions_are_trained_and_scored(
    backend: str, kind: str, plain_home: Workspace, tmp_path: Path
) -> None:
    """As users submit them: two ranks over two hosts train, an array of two shards scores.

    On Kubernetes in two pods each, of another user than this one. What submits and drives the
    training is killed while it runs, and another command drives on: one run. No key is where
    programs run. Start-up of TensorFlow is most of the test: one of the two kinds that have shards
    on each, and PBS begins its ranks as LSF does.
    """
    keys = {"FRAMESIFT_SECRET_KEY": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}
    asked = (
        "--range", "car=1:", "--limit", "4", "--backend", backend, "--workers", "2",
        "--resource", "ranks_per_node=1",
    )  # fmt: skip
    train = (
        "train", *asked, "--name", "net", "--save-as", "cars", "--max-steps", "2",
        "--batch-size", "1", "--height", "32", "--width", "48", "--no-prepare",
        "--divide", "train=0.5,validation=0.5", "--split-by", "frame", "--allow-leakage",
    )  # fmt: skip
    score = kind, "net", *asked, "--name", "score", "--save-as", "scored", "--evict"
    home, records = plain_home.home, plain_home.records

    def steps(name: str) -> list[str]:
        job = recorded_job(records, name)
        assert {task.state for task in job.tasks} == {"done"}
        assert [(task.backend, task.attempt) for task in job.tasks if task.name == "run"] == [
            (backend, 1)
        ]
        return [task.name for task in job.tasks]

    def is_running() -> bool:
        assert driver.poll() is None
        tasks = (task for job in recorded_jobs(records) for task in job.tasks)
        return any((task.name, task.state) == ("run", "running") for task in tasks)

    with cluster_of(backend, tmp_path, home) as cluster:
        variables = {**keys, **cluster}
        with subprocess.Popen([FRAMESIFT, *train], env=environment(home, variables)) as driver:
            try:
                eventually(is_running, every_s=0.3)
            finally:
                driver.kill()
        for command in (("jobs", "wait", "net"), score):
            ended = framesift(home, *command, variables=variables)
            assert ended.returncode == 0, ended.stderr
        assert steps("net") == ["select", "stage", "prepare", "run", "collect"]
        assert steps("score") == ["select", "stage", "prepare", "run", "collect", "evict"]
        model = JobPaths(plain_home.jobs / "net").model
        assert [begun["workers"] for begun in read_json(model / "run.json")["begun"]] == [2]
        assert [line["step"] for line in read_metrics(model)] == [1, 2]
        assert ended_well(cluster)
        tasks = Counter(task["job"] for task in cluster.tasks())
        # Of the training, and shards.
        assert sorted(tasks.values())[-2:] == ([2, 2] if backend == "kubernetes" else [1, 2])
        assert SECRET not in traces(cluster)
    written = (file for file in plain_home.jobs.rglob("*") if file.is_file())
    assert not [file for file in written if SECRET.encode() in file.read_bytes()]


@pytest.mark.slurm
def test_on_slurm(home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home's machine chooses and fetches, a node runs the program."""
    with slurm_cluster() as config:
        monkeypatch.setenv("SLURM_CONF", str(config))
        run(home, "slurm", None, CARS, "select", "stage", "prepare", "run", "evict")
        run(home, "slurm", "few", None, "stage", "prepare", "run")


@pytest.mark.slurm
def test_a_training_goes_on_after_its_wall_time(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm tells it in time for a checkpoint, has it back in its queue, and on from there."""
    session, records = Session(home, is_command=True), home.records
    make_dataset(home, NewDataset(name="few", question=CARS, seed=0))
    session.stagings.run(
        "few", cache=None, workers=2, progress=lambda _: None, failed=lambda _: None
    )
    with slurm_cluster(nodes=1) as config:
        monkeypatch.setenv("SLURM_CONF", str(config))
        session.jobs.train(
            "few", name="long", backend="slurm", workers=1, batch_size=1, max_steps=1_000_000,
            height=32, width=48, prepare=False, resources={"wall_minutes": 60},
        )  # fmt: skip
        log = JobPaths(home.jobs / "long").log("train", 0)
        (number,) = Handle.parse(recorded_job(records, "long").handle).numbers

        def until(text: str) -> None:
            def is_logged() -> bool:
                job = refresh(records, recorded_job(records, "long"))
                assert job.state not in FINISHED, job.error
                return log.exists() and text in log.read_text()

            eventually(is_logged, 600)

        until("step 1/1000000")
        started = recorded_job(records, "long").started
        assert started is not None
        # Its wall time ends soon: Slurm signals checkpoint_seconds (120) before.
        minutes = int((now() - started).total_seconds() // 60) + 4
        shorter = ["scontrol", "update", f"JobId={number}", f"TimeLimit={minutes}"]
        subprocess.run(shorter, check=True)
        until("its checkpoint is kept")
        hurry(number)
        until("going on from the checkpoint of step")
        cancel(records, recorded_job(records, "long"))
        eventually(lambda: refresh(records, recorded_job(records, "long")).state == "cancelled")
    _, second = log.read_text().split("==> turn 2 <==")
    assert "going on from the checkpoint of step" in second
    assert recorded_job(records, "long").tasks[0].attempt == 1  # turns are no attempts


@pytest.mark.hosts
def test_on_machines_behind_ssh(home: Workspace, tmp_path: Path) -> None:
    """The home's machine fetches beside it, the first of the machines runs the program."""
    make_dataset(home, NewDataset(name="few", question=CARS, seed=0))
    with two_hosts(tmp_path / "ssh") as machines:
        (home.home / "backends.toml").write_text(machines.settings)
        run(home, "hosts", "few", None, "run")


@pytest.mark.wide
def test_a_dataset_that_is_not_staged_is_staged_before(home: Workspace) -> None:
    """Where a backend fetches nothing beside a job; once it is staged, the job only runs."""
    jobs, records = Session(home, is_command=True).jobs, home.records
    make_dataset(home, NewDataset(name="few", question=CARS, seed=0))
    with pytest.raises(InvalidInput, match="slurm begins a job when all its frames are staged"):
        jobs.train("few", backend="slurm", workers=1, start_after=5.0)
    foreseen = jobs.dry_run("run", dataset="few", command=COMMAND, backend="slurm")
    assert [step.name for step in foreseen.steps] == ["stage", "prepare", "run"]
    asked = jobs.dry_run("run", dataset=None, command=COMMAND, question=CARS, save_as="other")
    assert jobs.list() == []
    begun = jobs.run("few", COMMAND, backend="slurm", name="first")
    assert [task.name for task in begun.tasks] == ["stage", "prepare", "run"]

    def is_staged() -> bool:
        first = refresh(records, recorded_job(records, "first"))
        return first.tasks[0].state == "done"

    eventually(is_staged)
    cancel(records, recorded_job(records, "first"))
    (staged,) = home.cache.glob(".manifests/*")
    assert f"--manifest '{staged}' " in foreseen.submission
    assert f"--manifest '{staged.parent}/other-v1-" in asked.submission
    with pytest.raises(JobFailed):  # there is no Slurm: what matters is that it was tried at once
        jobs.run("few", COMMAND, backend="slurm", name="second")
    assert [task.name for task in jobs.get("second").tasks] == ["run"]
