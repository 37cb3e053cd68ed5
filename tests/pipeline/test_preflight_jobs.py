"""Preflights as jobs: ranks here, behind ssh on two machines, and on two nodes of each cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.schemas.jobs import JobBody
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound
from catalog.records.datasets import complete_dataset
from pipeline.jobs.plan import plan
from pipeline.jobs.request import read_json
from pipeline.runs.preflight_order import Preflight
from tests.api.servers import framesift
from tests.pipeline.clusters import BACKENDS, cluster_of, ended_well
from tests.pipeline.homes import REPOSITORY, copy_home, open_home
from tests.pipeline.jobs import home_of
from tests.pipeline.test_datasets import make
from tests.pipeline.test_local_jobs import eventually
from tests.slurm_cluster import slurm_cluster
from tests.two_hosts import two_hosts


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Workspace:
    """A home with a dataset whose source is a folder of this machine."""
    workspace = open_home(copy_home(catalogued, tmp_path / "home"))
    make(workspace, "city")
    return workspace


def done(workspace: Workspace, **settings: Any) -> tuple[JobBody, dict[str, Any]]:
    """A preflight at its end, and its document."""
    jobs = Session(workspace, is_command=True).jobs
    begun = jobs.preflight(largest_mib=1, **settings)
    job = jobs.wait(begun.name, progress=lambda _: None)
    return job, read_json(jobs.file(job.name, "preflight.json").path)


@pytest.mark.training
def test_two_ranks_of_this_machine(home: Workspace) -> None:
    """Exchange, reads, clocks and ResNet-50: figures, a table of ranks, and the log's table."""
    job, found = done(home, dataset="city", synthetic=True, batch_size=1, steps=2)
    assert (job.dataset, job.metrics["nodes"], job.metrics["ranks"]) == ("city@1", 1, 2)
    assert [row["size_bytes"] for row in found["allreduce"]] == [8 << n for n in range(18)]
    assert all(row["wrong"] == 0 and row["busbw_gb_per_s"] > 0 for row in found["allreduce"])
    assert {(pair["source"], pair["target"]) for pair in found["pairs"]} == {(0, 1), (1, 0)}
    first, second = found["clocks"]
    assert first == {"ahead_s": 0.0, "bound_s": 0.0}
    assert abs(second["ahead_s"]) <= second["bound_s"] + 0.001  # one machine has one clock
    (source,) = found["reads"]
    assert (source["place"], sum(read["files"] for read in source["reads"])) == ("source", 48)
    synthetic = found["synthetic"]
    assert len(synthetic["ranks"]) == 2
    speeds = [rank["images_per_s"] for rank in synthetic["ranks"]]
    assert job.metrics["images_per_s"] == round(sum(speeds), 2) > 0
    titles = [table["title"] for table in job.metrics["tables"]]
    assert titles == ["Verdicts", "Allreduce", "Pairs", "Ranks"]
    lines = [row[1] for row in job.metrics["tables"][0]["rows"]]
    assert any("cache: not read: city@1 is not staged" in line for line in lines)
    assert any("Gloo over TCP, within the machine" in line for line in lines)
    log = Path(job.paths["logs"], "preflight-0.log").read_text()
    assert "total images/sec: " in log
    assert "# Avg bus bandwidth" in log


@pytest.mark.hosts
def test_over_two_machines_behind_ssh(home: Workspace, tmp_path: Path) -> None:
    """A rank on each, which meet over the network and read a folder there; versions are equal."""
    with two_hosts(tmp_path / "ssh") as machines:
        (home.home / "backends.toml").write_text(machines.settings)
        job, found = done(
            home, backend="hosts", path=str(tmp_path / "ssh"), resources={"ranks_per_node": 1}
        )
    assert [rank["node"] for rank in found["ranks"]] == [*machines.names]
    assert job.metrics["exchange"] == "Gloo over TCP"
    assert len({rank["address"] for rank in found["ranks"]}) == 2
    (read,) = found["reads"]
    assert read["place"] == "path"
    assert min(one["n_bytes"] for one in read["reads"]) > 0
    lines = [each["line"] for each in found["verdicts"]]
    assert "versions are the same on 2 ranks" in lines


@pytest.mark.slurm
def test_over_two_nodes_of_slurm(home: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a batch job; a rank on each node."""
    with slurm_cluster() as config:
        monkeypatch.setenv("SLURM_CONF", str(config))
        job, found = done(home, backend="slurm", resources={"ranks_per_node": 1})
    assert (job.backend, job.metrics["ranks"]) == ("slurm", 2)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    assert all(row["wrong"] == 0 for row in found["allreduce"])


@pytest.mark.training
@pytest.mark.parametrize("backend", BACKENDS)
def test_over_two_hosts_of_a_cluster(backend: str, home: Workspace, tmp_path: Path) -> None:
    """By the command of users; ranks read the staged files, too, and the log says each verdict."""
    assert framesift(home.home, "stage", "city").returncode == 0
    with cluster_of(backend, tmp_path, home.home) as cluster:
        ended = framesift(
            home.home, "preflight", "--name", "before", "--backend", backend, "--ranks", "2",
            "--resource", "ranks_per_node=1", "--largest-mib", "1", "--dataset", "city",
            variables=cluster,
        )  # fmt: skip
        logs = "".join(file.read_text() for file in (home.jobs / "before").rglob("*.log"))
        assert ended.returncode == 0, ended.stdout + ended.stderr + logs
        eventually(lambda: ended_well(cluster))
    found = read_json(home.jobs / "before" / "preflight.json")
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    assert [row["size_bytes"] for row in found["allreduce"]] == [8 << n for n in range(18)]
    assert all(row["wrong"] == 0 and row["busbw_gb_per_s"] > 0 for row in found["allreduce"])
    files = {each["place"]: sum(one["files"] for one in each["reads"]) for each in found["reads"]}
    assert files == {"cache": 48, "source": 48}, found["reads"]
    told = [each["line"] for each in found["verdicts"]]
    for begin in ("allreduce of 1 MB at ", "pairs ", "cache: ", "source: ", "clocks ", "versions "):
        assert [line for line in told if line.startswith(begin) and line in logs], begin


@pytest.mark.readers
def test_ranks_that_torch_joins(home: Workspace, tmp_path: Path) -> None:
    """On hosts whose Python has PyTorch, and neither TensorFlow nor Horovod."""
    python = REPOSITORY / ".venv-readers" / "bin" / "python"
    (home.home / "backends.toml").write_text(f"[lsf]\npython = '{python}'\n")
    with cluster_of("lsf", tmp_path, home.home) as cluster:
        ended = framesift(
            home.home, "preflight", "--name", "before", "--backend", "lsf", "--through", "torch",
            "--largest-mib", "1", "--dataset", "city",
            variables={**cluster, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        logs = "".join(file.read_text() for file in (home.jobs / "before").rglob("*.log"))
        assert ended.returncode == 0, ended.stdout + ended.stderr + logs
        eventually(lambda: ended_well(cluster))
    found = read_json(home.jobs / "before" / "preflight.json")
    assert [rank["versions"]["torch"] for rank in found["ranks"]] == ["2.13.0+cpu"] * 2
    assert not [name for name in found["ranks"][0]["versions"] if name in ("tensorflow", "horovod")]
    assert [row["size_bytes"] for row in found["allreduce"]] == [8 << n for n in range(18)]
    assert all(row["wrong"] == 0 and row["busbw_gb_per_s"] > 0 for row in found["allreduce"])
    assert {(pair["source"], pair["target"]) for pair in found["pairs"]} == {(0, 1), (1, 0)}
    assert found["clocks"][0] == {"ahead_s": 0.0, "bound_s": 0.0}
    (source,) = found["reads"]
    assert (source["place"], sum(read["files"] for read in source["reads"])) == ("source", 48)


def test_a_preflight_is_planned(home: Workspace) -> None:
    """Without a dataset, by torch, on Slurm; what cannot be is refused before anything begins."""
    jobs = Session(home, is_command=True).jobs
    described = jobs.dry_run("preflight", ranks=4, backend="slurm", path="/gpfs/adas")
    assert (described.dataset, described.frames) == (None, 0)
    assert "--ntasks=4" in described.submission
    assert "--largest_mib 64 --path /gpfs/adas" in described.submission
    order = Preflight(through="torch", backend="slurm")
    work = plan(home_of(home.records, home.job_queue), order).work
    assert work is not None
    assert work.resources.packages == ("torch",)
    assert [(stage.launcher, stage.ranks) for stage in work.stages] == [("ranks", 2)]
    with pytest.raises(NotFound, match="nowhere"):
        jobs.preflight(dataset="nowhere")
    with pytest.raises(InvalidInput, match="torch is not installed here"):
        jobs.preflight(through="torch", ranks=1)
    with pytest.raises(InvalidInput, match="steps 5: goes with synthetic"):
        jobs.preflight(steps=5)
    assert jobs.list() == []


def test_files_are_named_by_place(home: Workspace) -> None:
    """The dataset's, where its sources lie; of what is not staged, why."""
    home_here = home_of(home.records, home.job_queue)
    dataset = complete_dataset(home.records, "city@1")
    planned = plan(home_here, Preflight(dataset="city"), dataset)
    assert planned.work is not None
    for write in planned.work.writes:
        write()
    places = json.loads((planned.paths.folder / "reads.json").read_text())
    assert places["cache"] == "city@1 is not staged (framesift stage city@1)"
    assert len(places["source"]) == 2 * dataset.frames
    assert all(Path(path).is_file() for path in places["source"])
