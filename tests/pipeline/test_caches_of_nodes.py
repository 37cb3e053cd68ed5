"""Caches of nodes: on each a staging fetches what that node's ranks read, and nothing else."""

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

from api.services.call import user_here
from api.workspace import Workspace
from catalog.records.tables import Job
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.jobs.request import JobRequest
from pipeline.manifest import Manifest
from tests.api.servers import wait_until
from tests.pipeline.homes import FRAMES
from tests.pipeline.test_datasets import make
from tests.pipeline.test_reading_through import SEED, content, files_of, training
from tests.zygote import Forked


def record_job(workspace: Workspace, folder: Path) -> None:
    """The record of a job, as its submission leaves it."""
    with workspace.records.session() as session:
        session.add(
            Job(
                name=folder.name, kind="train", backend="local", state="running", handle="",
                request=JobRequest(folder.name, "train", ()).to_json(), dataset_id=1,
                paths={"folder": str(folder), "logs": str(folder / "logs")},
            )
        )  # fmt: skip


def is_ready(said: Path) -> bool:
    """Whether a staging says that readers may begin."""
    return said.exists() and bool(json.loads(said.read_text())["ready"])


def test_each_node_fetches_the_part_of_its_ranks(workspace: Workspace, tmp_path: Path) -> None:
    """Two nodes, two ranks: each reads its half of an epoch from its own cache, by the command."""
    dataset = make(workspace)
    record_job(workspace, tmp_path / "train-1")
    own = files_of(Manifest.read(Path(dataset.manifest)))
    nodes = []
    for rank in range(2):
        said, cache = tmp_path / f"staging-{rank}.json", tmp_path / f"node-{rank}"
        command = [
            "-m", "api.cli.job_step", str(tmp_path / "train-1"), "beside", "--dataset", "streets@1",
            "--cache", str(cache), "--split", "all", "--readers", "2", "--batch-size", "2",
            "--seed", str(SEED), "--ranks", str(rank), "--said", str(said),
        ]  # fmt: skip
        environment = {**os.environ, "FRAMESIFT_HOME": str(workspace.home)}
        nodes.append((Forked(command, env=environment, stdout=subprocess.PIPE), said, cache))
    rows = []
    for rank, (process, said, cache) in enumerate(nodes):
        wait_until(partial(is_ready, said))
        with ReadsThrough.at(Path(dataset.manifest), said) as through:
            through.begin(Reading(rank, 2, 2, 0, FRAMES))
            here = files_of(Manifest.read(through.manifest))
            for index, row in enumerate(training(rank, 2, 2, 1)):
                for path, source in zip(here[row], own[row], strict=True):
                    assert Path(path).is_relative_to(cache)
                    assert content(through, Path(path)) == Path(source).read_bytes()
                through.has_read(index)
                rows.append(row)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert len(list((cache / "local:a2d2").rglob("*.png"))) == FRAMES
    assert sorted(rows) == list(range(FRAMES))


def test_ranks_that_a_job_does_not_have_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    """In one line, before anything is fetched."""
    make(workspace)
    record_job(workspace, tmp_path / "train-1")
    command = [
        "-m", "api.cli.job_step", str(tmp_path / "train-1"), "beside", "--dataset", "streets@1",
        "--cache", str(tmp_path / "cache"), "--split", "all", "--readers", "2", "--ranks", "1,2",
    ]  # fmt: skip
    environment = {**os.environ, "FRAMESIFT_HOME": str(workspace.home)}
    refused = Forked(command, env=environment, stderr=subprocess.PIPE)
    _, said = refused.communicate()
    assert refused.returncode == 1
    assert "ranks 1, 2: the job has 2, from 0 to 1" in said


def test_a_script_stages_for_a_training_that_is_no_job(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Its folder is any one; the machine's user counts as the user of the staging."""
    make(workspace)
    folder, cache = tmp_path / "own", tmp_path / "cache"
    folder.mkdir()
    command = [
        "-m", "api.cli.job_step", str(folder), "beside", "--dataset", "streets@1",
        "--cache", str(cache), "--split", "all", "--readers", "1",
    ]  # fmt: skip
    environment = {**os.environ, "FRAMESIFT_HOME": str(workspace.home)}
    process = Forked(command, env=environment, stdout=subprocess.PIPE)
    wait_until(lambda: len(list(cache.rglob("*~*.png"))) == 2 * FRAMES)
    (about,) = (json.loads(file.read_text()) for file in cache.glob(".parts/*/staging.json"))
    assert (about["job_folder"], about["user"]) == (str(folder), user_here())
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0
