"""Training and validation as jobs: what is submitted, what is recorded.

The backend here only keeps what it is given; tests/pipeline/test_main_job.py runs the real thing.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.schemas.jobs import JobBody
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import (
    AlreadyExists,
    BadFile,
    InUse,
    InvalidInput,
    JobFailed,
    NotFound,
    StorageError,
    UnknownName,
)
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Dataset, Job, Task
from pipeline.jobs import installed
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.launch import on_this_machine
from pipeline.jobs.backends.registry import BACKENDS, backend
from pipeline.jobs.follow import cancel, refresh, wait
from pipeline.jobs.plan import settings_of
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, read_json, write_json
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import resume
from pipeline.jobs.workflow.moves import ASKED
from pipeline.jobs.workflow.remove import remove
from pipeline.jobs.workflow.submission import submitting
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from pipeline.runs.class_map import chosen_classes
from pipeline.runs.networks import DEEPLAB
from pipeline.runs.orders import Training, Validation
from pipeline.runs.training_input import USUAL_SIZE, pays
from pipeline.staging.stage import stage_dataset
from tests.api.servers import wait_until
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.jobs import (
    describe_order,
    submit_prediction,
    submit_training,
    submit_validation,
)
from tests.pipeline.test_datasets import make

SPLIT = "train=0.75,validation=0.25"


class Keeping:
    """A backend that keeps the request, and whose status is what status.json says."""

    name = "keeping"
    stages_beside = True

    def check(self, resources: Resources, queue: JobQueue) -> None:
        """Any."""

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Keep it."""
        write_json(paths.request, request.to_json())
        return "kept"

    def find(self, name: str, paths: JobPaths) -> str | None:
        """The one handle, where a request was kept."""
        return "kept" if paths.request.exists() else None

    def statuses(self, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        """What a test wrote."""
        said = {handle: read_json(paths.status) for handle, paths in handles.items()}
        return {
            handle: JobStatus(document.get("state", "running"), document.get("error", ""))
            for handle, document in said.items()
        }

    def describe(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Nothing is submitted anywhere."""
        return ""

    def cancel(self, handle: str, paths: JobPaths) -> None:
        """Note it."""
        write_json(paths.status, {"state": "cancelled", "error": "cancelled"})


class Refusing(Keeping):
    """A backend that takes no jobs."""

    def submit(self, request: JobRequest, paths: JobPaths, queue: JobQueue, name: str) -> str:
        """Refuse it."""
        raise JobFailed(request.name, "the queue is closed")


@pytest.fixture(scope="module")
def divided(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a divided dataset; not to be changed."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("divided"))
    workspace = open_home(home)
    make(workspace, split=SPLIT)
    workspace.close()
    return home


@pytest.fixture
def home(divided: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A copy of it, and the backends above beside the real ones."""
    monkeypatch.setitem(BACKENDS, "keeping", f"{__name__}:Keeping")
    monkeypatch.setitem(BACKENDS, "refusing", f"{__name__}:Refusing")
    workspace = open_home(copy_home(divided, tmp_path))
    yield workspace
    workspace.close()


@pytest.fixture
def streets(home: Workspace) -> Dataset:
    """The dataset."""
    return recorded_dataset(home.records, "streets")


def train(
    home: Workspace, name: str | None = None, backend: str = "keeping", **settings: object
) -> Job:
    """Submit a training."""
    return submit_training(
        home.records,
        home.job_queue,
        recorded_dataset(home.records, "streets"),
        **settings,
        name=name,
        backend=backend,
    )


def model_folder(folder: Path) -> Path:
    """Something that looks like a finished model from here."""
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    return folder


def commands(job: Job, home: Workspace) -> list[list[str]]:
    """The job's commands, one list per stage and command, with this machine's paths replaced."""
    names = {str(home.home): "HOME", PYTHON: "PYTHON"}
    lines = []
    for stage in job.request["stages"]:
        for command in stage["commands"]:
            text = "\0".join(command)
            for path, name in names.items():
                text = text.replace(path, name)
            lines.append([stage["title"], *text.split("\0")])
    return lines


MAIN = ["PYTHON", "-P", "-m", "training.main", "--manifest", "HOME/datasets/streets/v1"]


def test_training_is_one_program_for_ranks(home: Workspace) -> None:
    """The whole command line, as data; a launcher and Python are the backend's."""
    job = train(home, "first", workers=2, max_steps=7, height=64, width=96, learning_rate=0.01)
    assert commands(job, home) == [
        [
            "train", *MAIN,
            "--model_dir", "HOME/jobs/first/model", "--exec_mode", "train", "--split", "train",
            "--batch_size", "4", "--seed", "0", "--num_workers", "2", "--max_steps", "7",
            "--learning_rate", "0.01", "--height", "64", "--width", "96",
        ]
    ]  # fmt: skip
    assert [stage["ranks"] for stage in job.request["stages"]] == [2]
    assert on_this_machine(JobRequest.from_json(job.request).stages[0], "py")[0][:9] == (
        "py", "-P", "-m", "framesift_start", "training.local_ranks", "-np", "2", "-H",
        "localhost:2",
    )  # fmt: skip
    assert job.paths["model_dir"] == str(home.jobs / "first" / "model")
    assert job.paths["manifest"] == recorded_dataset(home.records, "streets").manifest
    kept = read_json(JobPaths(home.jobs / "first").request)
    assert kept == {name: value for name, value in job.request.items() if name != ASKED}
    assert (job.state, job.handle, job.backend) == ("pending", "kept", "keeping")


def test_one_worker_needs_no_launcher(home: Workspace) -> None:
    """Without other workers the program is started itself."""
    job = train(home, "single", workers=1)
    ((command,),) = (on_this_machine(s, "py") for s in JobRequest.from_json(job.request).stages)
    assert command[:5] == ("py", "-P", "-m", "framesift_start", "training.main")
    assert "--num_workers" in command


def test_what_a_backend_cannot_give_is_refused(
    home: Workspace, streets: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is recorded: a limit of a scheduler's here, a variable that no job gets."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"wall_minutes": 60}, "wall minutes 60: backend local has no such setting"),
        ({"options": {"partition": "gpu"}}, "options partition=gpu: backend local has no such"),
        ({"environment": ("NOT_SET",)}, "environment NOT_SET: is not set where the job"),
        ({"environment": ("AWS_SECRET_ACCESS_KEY",)}, "no job inherits it"),
    ]
    for resources, words in refused:
        with pytest.raises(InvalidInput, match=words):
            submit_training(
                home.records, home.job_queue, streets, workers=1,
                resources=resources,
            )  # fmt: skip
    for field in ("cores", "ranks_per_node", "memory_mb", "wall_minutes"):
        with pytest.raises(InvalidInput, match="0: expected at least 1"):
            Resources.from_json({field: 0})
    assert recorded_jobs(home.records) == []


def test_validation_is_shards_and_a_merge(home: Workspace, streets: Dataset) -> None:
    """One command per worker, then the merge; all shards run at once."""
    model = model_folder(home.home / "model")
    job = submit_validation(
        home.records, home.job_queue, str(model), streets,
        workers=2, name="check", backend="keeping",
    )  # fmt: skip
    shard = [
        "validate", *MAIN, "--model_dir", "HOME/model", "--exec_mode", "evaluate",
        "--split", "validation", "--threads", "1",
        "--results_dir", "HOME/jobs/check/results", "--shard",
    ]  # fmt: skip
    assert commands(job, home) == [
        [*shard, "0", "--shards", "2"],
        [*shard, "1", "--shards", "2"],
        [
            "merge", "PYTHON", "-P", "-m", "training.merge_scores",
            "--results_dir", "HOME/jobs/check/results", "--shards", "2",
            "--out", "HOME/jobs/check/report", "--job", "check",
        ],
    ]  # fmt: skip
    trusting = submit_validation(
        home.records, home.job_queue, str(model), streets,
        workers=1, trust_model=True, name="trusting", backend="keeping",
    )  # fmt: skip
    assert "--trust_model" in commands(trusting, home)[0]
    assert trusting.request["settings"]["trust_model"] is True
    other = model_folder(home.home / "other")
    beside = submit_validation(
        home.records, home.job_queue, str(model), streets,
        workers=1, compare=str(other), name="beside", backend="keeping",
    )  # fmt: skip
    evaluate, merge = commands(beside, home)
    assert evaluate[evaluate.index("--compare_dir") + 1] == "HOME/other"
    assert merge[-1] == "--compared"
    assert beside.request["settings"]["compare"] == str(other)
    write_json(model / "model.json", {"classes": ["Car", "Sky"]})
    write_json(other / "model.json", {"classes": ["Car"]})
    with pytest.raises(InvalidInput, match=r"knows 2 classes, dataset streets has"):
        submit_validation(home.records, home.job_queue, str(model), streets, name="no")
    with pytest.raises(InvalidInput, match=r"knows 2 classes, dataset streets has"):
        submit_prediction(home.records, home.job_queue, str(model), streets, name="no")
    classes = read_manifest(home.records, streets).header.classes
    write_json(model / "model.json", {"classes": list(classes)})
    with pytest.raises(InvalidInput, match=r"knows 1 classes and model .* 38, not all the same"):
        submit_validation(
            home.records, home.job_queue, str(model), streets, compare=str(other), name="no"
        )
    assert job.request["parallel"] == 2
    assert job.paths["report"] == str(home.jobs / "check" / "report" / "report.json")


def test_a_checkpoint_or_a_file_is_a_model(home: Workspace, streets: Dataset) -> None:
    """MODEL@STEP is made a model in the job's folder first; of files, those of a model's folder."""
    train(home, name="first")
    folder = home.jobs / "first" / "model"
    folder.mkdir(parents=True)
    for name, step in (("checkpoint.npz", 20_000), ("checkpoint-1.npz", 10_000)):
        np.savez(folder / name, about=np.array(json.dumps({"step": step})))
    (folder / "checkpoint-2.npz").write_bytes(b"PK cut")

    def validate(model: str, **options: str) -> Job:
        return submit_validation(
            home.records, home.job_queue, model, streets, workers=1, backend="keeping",
            **options,
        )  # fmt: skip

    job = validate("first@10000", compare="first@20000")
    exported, other, evaluate, _ = commands(job, home)
    where = f"HOME/jobs/{job.name}/checkpoints/first@"
    assert exported == [
        "export", "PYTHON", "-P", "-m", "training.export_checkpoint",
        "--model_dir", "HOME/jobs/first/model", "--step", "10000", "--out", f"{where}10000",
    ]  # fmt: skip
    assert other[-1] == f"{where}20000" == evaluate[evaluate.index("--compare_dir") + 1]
    assert evaluate[evaluate.index("--model_dir") + 1] == f"{where}10000"
    assert job.paths["model_dir"].endswith("checkpoints/first@10000")
    with pytest.raises(InvalidInput, match=r"no checkpoint of step 5; it has 10,000, 20,000"):
        validate("first@5")
    with pytest.raises(InvalidInput, match=r"did not finish, and left first@10000, first@20000"):
        validate("first")
    with pytest.raises(InvalidInput, match=r"has no best model yet: framesift train --evaluate"):
        validate("first@best")
    model_folder(folder / "best")
    job = validate("first@best", compare="first@10000")
    exported, _, evaluate, _ = commands(job, home)
    where = f"HOME/jobs/{job.name}/checkpoints/first@best"
    assert exported[-3:] == ["--best", "--out", where]
    assert evaluate[evaluate.index("--model_dir") + 1] == where
    model = model_folder(home.home / "its@1")
    for path in (model, model / "model.json"):
        assert validate(str(path)).paths["model_dir"] == str(model)
    (home.home / "net.h5").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"net\.h5: is no model: expected a folder"):
        validate(str(home.home / "net.h5"))
    write_json(JobPaths(home.jobs / "first").status, {"state": "done"})
    with pytest.raises(InUse, match="uses its model"):
        remove(home.records, recorded_job(home.records, "first"))


def test_code_of_a_network_runs_for_those_who_trust_it(home: Workspace, streets: Dataset) -> None:
    """A training of this home says which code is its network's; a file is believed if trusted."""
    train(home, "first", model="nets:two")
    folder = home.jobs / "first" / "model"
    for made in (folder, folder / "best"):
        model_folder(made).joinpath("model.json").write_text('{"network": "nets:two"}')

    def network(model: str, *, trust_model: bool = False) -> list[str]:
        job = submit_validation(
            home.records, home.job_queue, model, streets, workers=1, backend="keeping",
            trust_model=trust_model,
        )  # fmt: skip
        evaluate = commands(job, home)[-2]
        return [flag for name, flag in pairwise(evaluate) if name == "--model"]

    assert network("first") == network("first@best") == ["nets:two"]
    with pytest.raises(InvalidInput, match=r"nets:two, whose code .* or give --trust-model"):
        network(str(folder / "best"))
    assert network(str(folder / "best"), trust_model=True) == ["nets:two"]
    (folder / "model.json").write_text('{"network": "nets:two()"}')
    with pytest.raises(InvalidInput, match=r"expected MODULE:FUNCTION"):
        network(str(folder), trust_model=True)


def test_a_dataset_that_is_not_divided_gives_all_its_frames(home: Workspace) -> None:
    """`select --save d`, then `train d`: where no split is named, and there is none, all of it."""
    make(home, name="whole")
    whole = recorded_dataset(home.records, "whole")
    model = str(model_folder(home.home / "model"))
    job = submit_training(home.records, home.job_queue, whole, workers=1, backend="keeping")
    check = submit_validation(home.records, home.job_queue, model, whole, backend="keeping")
    for submitted in (job, check):
        command = commands(submitted, home)[0]
        assert command[command.index("--split") + 1] == "all"
    with pytest.raises(UnknownName, match="unknown split 'train'"):
        submit_training(home.records, home.job_queue, whole, split="train")


def test_a_run_begins_with_another_s_weights(home: Workspace, tmp_path: Path) -> None:
    """A finished model, or the checkpoint of a training that was cancelled, is the parent."""
    train(home, "first")
    for missing in ("first", str(tmp_path)):
        with pytest.raises(InvalidInput, match=r"model\.json and checkpoint\.npz are missing"):
            train(home, continue_from=missing)
    with pytest.raises(NotFound, match="no model named 'nobody'"):
        train(home, continue_from="nobody")
    checkpoint = home.jobs / "first" / "model" / "checkpoint.npz"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    job = train(home, "second", continue_from="first", epochs=2)
    (command,) = commands(job, home)
    assert command[-2:] == ["--continue_from", "HOME/jobs/first/model"]
    assert command[command.index("--epochs") + 1] == "2"
    assert job.paths["continued_from"] == str(checkpoint.parent)
    for name in ("run.json", "model.json"):
        (checkpoint.parent / name).write_text(json.dumps({"classes": ["Car", "Tram"]}))
        with pytest.raises(
            InvalidInput, match=r"knows 2 classes, the training would have 38; they"
        ):
            train(home, continue_from="first")
        (checkpoint.parent / name).unlink()
    with pytest.raises(InvalidInput, match="no best model yet"):
        train(home, continue_from="first@best")
    model_folder(checkpoint.parent / "best")
    job = train(home, "third", continue_from="first@best", workers=1)
    exported, command = commands(job, home)
    assert exported[-3:] == ["--best", "--out", "HOME/jobs/third/checkpoints/first@best"]
    assert command[-2:] == ["--continue_from", "HOME/jobs/third/checkpoints/first@best"]


def test_classes_and_the_network_are_the_users(home: Workspace, streets: Dataset) -> None:
    """The program is told the whole map; a label class that it lacks starts nothing."""
    map_ = chosen_classes("a2d2-8")
    assert map_ is not None
    job = train(home, "eight", classes="a2d2-8", model="my_nets:tiny")
    (command,) = commands(job, home)
    assert json.loads(command[command.index("--classes") + 1]) == map_.as_json()
    assert command[command.index("--model") + 1] == "my_nets:tiny"
    model = home.jobs / "eight" / "model" / "model.json"
    model.parent.mkdir(parents=True)
    model.write_text(json.dumps({"class_map": map_.as_json()}))
    check = {"backend": "keeping", "fail_below": {"vehicle": 0.5}}
    job = submit_validation(home.records, home.job_queue, "eight", streets, **check)
    command = commands(job, home)[0]
    assert command[command.index("--model") + 1] == "my_nets:tiny"
    job = submit_validation(home.records, home.job_queue, str(model.parent), streets, **check)
    assert "--model" not in commands(job, home)[0]  # a folder's word is not enough to run code
    with pytest.raises(UnknownName, match=r"'car': .*Expected miou, .* class's tag for its"):
        submit_validation(home.records, home.job_queue, "eight", streets, fail_below={"car": 0.5})
    with pytest.raises(InvalidInput, match="dataset streets has the label classes Bicycle, Pedes"):
        train(home, classes={"classes": {"Vehicle": ["Car"]}})
    (command,) = commands(train(home, "scored", evaluate_every=2), home)
    assert command[command.index("--exec_mode") + 1] == "train_and_evaluate"
    assert command[command.index("--evaluate_every") + 1] == "2"
    backwards = {"split": "validation", "evaluate_split": "train"}
    (command,) = commands(train(home, "swapped", evaluate_every=2, **backwards), home)
    assert command[command.index("--evaluate_split") + 1] == "train"
    (command,) = commands(train(home, "skips", bad_frames="skip:7"), home)
    assert command[command.index("--bad_frames") + 1] == "skip:7"
    exchange = {"compression": "fp16", "fusion_mb": 32, "reduce": "average"}
    (command,) = commands(train(home, "exchanging", horovod=exchange), home)
    assert command[command.index("--horovod") + 1] == "fusion_mb=32,compression=fp16"
    (command,) = commands(train(home, "halves", precision="mixed_float16"), home)
    assert command[command.index("--precision") + 1] == "mixed_float16"
    with pytest.raises(InvalidInput, match=r"none\.h5: no such file; expected ResNet-50's weights"):
        train(home, "weighted", model=DEEPLAB, backbone_weights="none.h5", backend="local")
    for settings, message in (
        ({"target_miou": 0.5}, "give evaluate every, too"),
        ({"target_miou": 1.5, "evaluate_every": 1}, "target miou 1.5: expected a number above 0"),
        ({"horovod": {"reduce": "sum"}}, "horovod reduce=sum: expected some of"),
        ({"horovod": {"fusion_mb": -1}}, "horovod fusion_mb=-1: expected"),
        ({"bad_frames": "drop"}, "expected fail, skip"),
        ({"precision": "float8"}, "unknown precision 'float8'"),
        ({"evaluate_every": 1, "split": "validation"}, "is trained on; name another .*: train$"),
        ({"evaluate_every": 1, "evaluate_split": "val"}, "--evaluate-split: validation$"),
        ({"height": 60}, "height 60: expected a multiple of 8 up to 8,192 pixels, such as 64"),
        ({"width": 0}, "width 0: expected a multiple of 8 up to 8,192 pixels, such as 8"),
        ({"evaluate_split": "validation"}, "give evaluate every, too"),
        ({"classes": "a2d2-9"}, "unknown class map"), ({"model": "big"}, "unknown network"),
        ({"model": "os:system;"}, "expected MODULE:FUNCTION"),
        ({"backbone_weights": "w.h5"}, "network small_unet has no such backbone"),
        ({"horovod": {"reduce": "adasum"}}, "jobs start their workers by Gloo"),
        ({"width": 100_000}, "width 100000: expected a multiple of 8 up to 8,192 pixels"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=message):
            train(home, **settings)


def test_a_staged_dataset_is_read_from_the_cache(
    home: Workspace, streets: Dataset, tmp_path: Path
) -> None:
    """The newest staging's manifest is what the job gets."""
    staging = stage_dataset(home.records, streets, tmp_path / "cache")
    assert train(home).paths["manifest"] == staging.manifest


def test_a_training_that_decodes_much_prepares_its_frames_first(
    home: Workspace, streets: Dataset, tmp_path: Path
) -> None:
    """A stage of its own, where the rule or the user wants it; of folders, too, in the cache."""
    with pytest.raises(InvalidInput, match="prepare: goes with frames that are staged or lie"):
        submit_training(
            home.records,
            home.job_queue,
            streets,
            prepare=True,
            stage=False,
            backend="keeping",
        )
    in_place = train(home, workers=64)
    assert [line[0] for line in commands(in_place, home)] == ["prepare", "train"]
    place = Path(in_place.paths["manifest"])
    assert place.parent == home.cache / ".manifests"
    own = Manifest.read(Path(streets.manifest))
    assert Manifest.read(place).image_paths() == own.image_paths()
    assert [line[0] for line in commands(train(home, max_steps=1), home)] == ["train"]
    staging = stage_dataset(home.records, streets, tmp_path / "cache")
    preparing, training = commands(train(home, "first", workers=64), home)
    assert preparing == [
        "prepare", "PYTHON", "-P", "-m", "pipeline.prepared.before_training", staging.manifest,
        "240x152", "--job", "first", "--user", "",
    ]  # fmt: skip
    assert training[0] == "train"
    cases: tuple[tuple[dict[str, object], list[str]], ...] = (
        ({"workers": 64, "prepare": False}, ["train"]),
        ({"workers": 64, "max_steps": 1, "batch_size": 1}, ["train"]),
        ({"max_steps": 1}, ["train"]),
        ({"max_steps": 1, "prepare": True, "height": 64, "width": 96}, ["prepare", "train"]),
    )
    for settings, stages in cases:
        job = train(home, **settings)  # type: ignore[arg-type]
        assert [line[0] for line in commands(job, home)] == stages, settings
    stage = JobRequest.from_json(job.request).stages[0]
    assert (stage.optional, stage.commands[0][5]) == (True, "96x64")


@pytest.mark.parametrize(
    ("examples", "workers", "split_frames", "expected"),
    [
        (2_400, 2, 33_004, False),  # few steps
        (33_004, 2, 33_004, False),  # one epoch
        (66_008, 1, 33_004, True),  # more than its memory holds: each epoch decodes
        (66_008, 2, 33_004, True),
        (330_040, 1, 7_000, False),  # its memory holds them: each frame is decoded once
        (330_040, 8, 7_000, True),  # by each worker
        (40_199, 2, 33_004, False),  # hardly more than the form costs
        (40_200, 2, 33_004, True),
    ],
)
def test_what_pays(examples: int, workers: int, split_frames: int, expected: bool) -> None:
    """Where workers would decode more frames than the dataset, of 40,000, has."""
    assert expected is pays(
        dataset_frames=40_000,
        split_frames=split_frames,
        examples=examples,
        workers=workers,
        size=USUAL_SIZE,
    )


def test_made_up_names_are_free(home: Workspace, streets: Dataset) -> None:
    """Several submissions at once each get a name, and an asked-for one is stepped around."""
    train(home, "train-streets-2")
    with ThreadPoolExecutor(4) as pool:
        names = [job.name for job in pool.map(lambda _: train(home), range(4))]
    assert len({*names, "train-streets-2"}) == 5
    assert all(name.startswith("train-streets-") for name in names)


def test_a_taken_name_is_refused(home: Workspace) -> None:
    """Neither a job's name nor the name of a folder left among the jobs is taken again."""
    train(home, "first")
    with pytest.raises(AlreadyExists, match="job 'first' already exists: give another --name"):
        train(home, "first")
    (home.jobs / "left-over").mkdir()
    with pytest.raises(AlreadyExists):
        train(home, "left-over")
    assert [job.name for job in recorded_jobs(home.records)] == ["first"]


@pytest.mark.parametrize(
    "name", ["", "..", "../out", "/tmp/out", "a/b", "a b", ".hidden", "x" * 128, "a\n"]
)
def test_a_name_that_leaves_the_jobs_folder_is_refused(home: Workspace, name: str) -> None:
    """A job's name is a folder's name and nothing more."""
    with pytest.raises(InvalidInput, match="job name '"):
        train(home, name)
    assert recorded_jobs(home.records) == []


def test_bad_settings_are_refused_before_anything_is_kept(
    home: Workspace, streets: Dataset
) -> None:
    """Every setting that cannot be used; no job is recorded."""
    for settings in (
        {"workers": 0}, {"batch_size": 0}, {"max_steps": 0}, {"seed": -1}, {"height": 0},
        {"width": -8}, {"learning_rate": 0.0}, {"learning_rate": float("nan")}, {"epochs": 0},
        {"max_steps": 3, "epochs": 1},
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=r"expected|one of them"):
            train(home, **settings)
    with pytest.raises(UnknownName, match="unknown split 'test'"):
        train(home, split="test")
    with pytest.raises(UnknownName, match="unknown backend"):
        train(home, backend="nowhere")
    model = str(model_folder(home.home / "model"))
    with pytest.raises(InvalidInput, match="workers 0: expected 1 or more"):
        submit_validation(home.records, home.job_queue, model, streets, workers=0)
    with pytest.raises(UnknownName, match="unknown split 'all'"):
        submit_validation(home.records, home.job_queue, model, streets, split="all")
    assert recorded_jobs(home.records) == []
    assert not home.jobs.exists()


def test_a_model_that_is_none_is_refused(home: Workspace, streets: Dataset, tmp_path: Path) -> None:
    """Neither a job nor a folder, a folder without model.json, a training without a model yet."""
    train(home, "unfinished")
    for model, kind, message in (
        ("nobody", NotFound, "no model named 'nobody': expected the name of a training job, "),
        (str(tmp_path), InvalidInput, "holds no trained model .model.json is missing"),
        ("unfinished", InvalidInput, "holds no trained model .model.json is missing"),
        ("a\0b", NotFound, "no model named"),
    ):
        with pytest.raises(kind, match=message):
            submit_validation(home.records, home.job_queue, model, streets)


def test_a_job_goes_before_a_folder_of_its_name(
    home: Workspace, streets: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies where the user happens to stand does not hide a training job."""
    train(home, "demo-train")
    model_folder(home.jobs / "demo-train" / "model")
    (tmp_path / "here" / "demo-train").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    job = submit_validation(home.records, home.job_queue, "demo-train", streets, backend="keeping")
    assert job.paths["model_dir"] == str(home.jobs / "demo-train" / "model")


def test_a_damaged_manifest_starts_nothing(home: Workspace, streets: Dataset) -> None:
    """The manifest is read before a job is made of it."""
    (Path(streets.manifest) / "frames.parquet").unlink()
    with pytest.raises(BadFile):
        train(home)
    assert recorded_jobs(home.records) == []


def test_a_refused_submission_is_a_failed_job(home: Workspace) -> None:
    """The backend's reason is kept, and raised."""
    with pytest.raises(JobFailed, match="the queue is closed"):
        train(home, "first", backend="refusing")
    job = recorded_job(home.records, "first")
    assert (job.state, job.error) == ("failed", "the queue is closed")
    assert job.finished is not None


def test_a_jobs_folder_that_cannot_be_made_is_a_storage_error(home: Workspace) -> None:
    """One line, and nothing is recorded."""
    home.jobs.write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot be locked: (Not a directory|File exists)"):
        train(home, "first")
    assert recorded_jobs(home.records) == []


def test_metrics_show_up_in_the_record(home: Workspace) -> None:
    """What the training program writes to metrics.json is in the job's record, from then on."""
    job = train(home, "first")
    assert refresh(home.records, job).metrics == {}
    metrics = {"step": 3, "max_steps": 9, "first_loss": 2.5, "loss": 1.5}
    model = JobPaths(home.jobs / "first").model
    model.mkdir()
    (model / "metrics.json").write_text(json.dumps(metrics))
    assert refresh(home.records, job).metrics == metrics
    (model / "metrics.json").write_text("{half")
    assert refresh(home.records, job).metrics == metrics
    assert recorded_job(home.records, "first").metrics == metrics


def test_waiting_ends_with_the_job(home: Workspace) -> None:
    """wait() tells how things stand until the end; a failed job raises with its reason."""
    job = train(home, "first")
    seen: list[str] = []

    def finish() -> None:
        wait_until(lambda: bool(seen))
        write_json(JobPaths(home.jobs / "first").status, {"state": "done"})

    threading.Thread(target=finish).start()
    done = wait(home.records, job, lambda now: seen.append(now.state))
    assert (done.state, seen[0], seen[-1]) == ("done", "running", "done")
    assert done.finished is not None
    assert wait(home.records, done).state == "done"
    bad = train(home, "second")
    write_json(JobPaths(home.jobs / "second").status, {"state": "failed", "error": "no GPU"})
    with pytest.raises(JobFailed, match="job second failed: no GPU"):
        wait(home.records, bad)
    with pytest.raises(JobFailed, match="job second failed: no GPU"):
        wait(home.records, recorded_job(home.records, "second"))


def test_a_finished_job_stays_as_it_was(home: Workspace) -> None:
    """Cancel and refresh after the end change nothing, whatever lies on disk later."""
    job = train(home, "first")
    old = recorded_job(home.records, "first")
    write_json(JobPaths(home.jobs / "first").status, {"state": "done"})
    done = refresh(home.records, job)
    assert cancel(home.records, done).state == "done"
    write_json(JobPaths(home.jobs / "first").status, {"state": "running"})
    assert refresh(home.records, done).state == "done"
    assert refresh(home.records, old).state == "done"
    assert recorded_job(home.records, "first").state == "done"


def test_a_job_under_submission_is_not_taken_for_a_dead_one(home: Workspace) -> None:
    """While its submitter has no handle yet, it is pending; once that is gone, it is looked for."""
    job = train(home, "first")
    with home.records.session() as session:
        task = session.query(Task).filter_by(job_id=job.id).one()
        task.handle = session.get_one(Job, job.id).handle = ""
    with submitting(Path(job.paths["folder"])):
        assert refresh(home.records, recorded_job(home.records, "first")).state == "pending"
    assert refresh(home.records, recorded_job(home.records, "first")).handle == "kept"


def failed(home: Workspace, name: str) -> Job:
    """The job, which has ended badly."""
    write_json(JobPaths(home.jobs / name).status, {"state": "failed", "error": "no GPU"})
    return refresh(home.records, recorded_job(home.records, name))


def test_the_next_attempt_is_the_same_job(home: Workspace) -> None:
    """The same commands in the same folder; counted; what was of the last attempt is gone."""
    first = train(home, "first", max_steps=7)
    cancel(home.records, first)
    JobPaths(home.jobs / "first").cancel.touch()
    ended = refresh(home.records, first)
    again = resume(home.records, home.job_queue, ended)
    assert (again.state, again.error, again.finished, again.handle) == ("pending", "", None, "kept")
    assert again.request == first.request | {"attempt": 2}
    handed_over = read_json(JobPaths(home.jobs / "first").request)
    assert handed_over == {key: value for key, value in again.request.items() if key != ASKED}
    assert not JobPaths(home.jobs / "first").cancel.exists()
    failed(home, "first")
    assert resume(home.records, home.job_queue, again).request["attempt"] == 3
    assert [job.name for job in recorded_jobs(home.records)] == ["first"]


def test_a_job_goes_on_with_other_workers_and_bad_frames(
    home: Workspace, streets: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands, its ranks and what it reports as asked for; the rest stays as it was."""

    def gone_on(job: Job, **changes: Any) -> Job:
        Session(home, is_command=True).jobs.resume(job.name, **changes)
        return recorded_job(home.records, job.name)

    first = train(home, "first", workers=2, max_steps=7)
    again = gone_on(failed(home, "first"), workers=1, bad_frames="skip:9")
    (command,) = commands(again, home)
    (before,) = commands(first, home)
    assert command[command.index("--num_workers") + 1] == "1"
    assert command[-2:] == ["--bad_frames", "skip:9"]
    assert len(command) == len(before) + 2
    assert again.request["stages"][0]["ranks"] == again.request["resources"]["ranks"] == 1
    changed = {"workers": 1, "bad_frames": "skip:9"}
    assert again.request["settings"] == first.request["settings"] | changed
    model = str(model_folder(home.home / "model"))
    submit_validation(
        home.records, home.job_queue, model, streets, workers=2, bad_frames="skip:1", name="v",
        backend="keeping",
    )  # fmt: skip
    checked = failed(home, "v")
    with pytest.raises(InvalidInput, match=r"workers 3: job v is of kind validate, and only a tra"):
        gone_on(checked, workers=3)
    again = gone_on(checked, bad_frames="skip:20")
    assert [command[command.index("--bad_frames") + 1] for command in commands(again, home)] == [
        "skip:20"
    ] * 3
    local = backend("local")
    monkeypatch.setattr(Keeping, "check", lambda _self, *asked: local.check(*asked))
    for wrong, message in (
        ({"bad_frames": "all"}, "bad frames 'all': expected fail, skip"),
        ({"workers": 0}, "workers 0: expected 1 or more"),
        ({"workers": 10_000}, "a job on this machine may have at most"),
    ):
        with pytest.raises(InvalidInput, match=message):
            gone_on(failed(home, "first"), **wrong)
    assert recorded_job(home.records, "first").request["attempt"] == 2


def test_a_model_of_a_relative_folder_is_found_from_another_folder(
    home: Workspace, tmp_path: Path, streets: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of a command has its folder, so that the next attempt is planned anywhere."""
    model_folder(home.home / "model")
    monkeypatch.chdir(home.home)
    jobs = Session(home, is_command=True).jobs
    order = {"kind": "validate", "model": "model", "dataset": streets.name, "backend": "keeping"}
    jobs.submit({**order, "name": "v"})
    failed(home, "v")
    monkeypatch.chdir(tmp_path)
    jobs.resume("v", bad_frames="skip:3")
    again = recorded_job(home.records, "v")
    assert again.request["settings"]["bad_frames"] == "skip:3"
    assert again.paths["model_dir"] == str((home.home / "model").resolve())


def test_a_job_that_cannot_go_on_says_so_whatever_is_to_change(home: Workspace) -> None:
    """A running job is running, also where the change could not be made either."""
    train(home, "first")
    jobs = Session(home, is_command=True).jobs
    for change in ({"bad_frames": "all"}, {"workers": 3}):
        with pytest.raises(InvalidInput, match="job first is running: framesift jobs wait"):
            jobs.resume("first", **change)


def test_a_job_shows_what_was_asked_for_before_it_is_planned() -> None:
    """Zeros, no and none that a user gave; no switch that nobody touched."""
    question: dict[str, Any] = {"ranges": []}
    order = Training(question=question, stage=False, prepare=False, augment=(), bad_frames="skip")
    shown = settings_of(order)
    assert (shown["seed"], shown["stage"], shown["prepare"], shown["augment"]) == (
        0,
        False,
        False,
        (),
    )
    assert (shown["bad_frames"], shown["question"]) == ("skip", question)
    usual = settings_of(Validation(model="m", question=question))
    assert not {"stage", "slices", "trust_model", "bad_frames", "split"} & usual.keys()


def test_what_has_no_next_attempt_is_refused(home: Workspace) -> None:
    """It runs, is done, or is of another sort; nothing is changed."""
    job = train(home, "first")
    with pytest.raises(InvalidInput, match="job first is running: framesift jobs wait first"):
        resume(home.records, home.job_queue, job)
    write_json(JobPaths(home.jobs / "first").status, {"state": "done"})
    with pytest.raises(InvalidInput, match="job first is done: there is nothing left to do"):
        resume(home.records, home.job_queue, job)
    train(home, "second")
    failed(home, "second")
    with home.records.session() as session:
        session.query(Job).filter_by(name="second").one().kind = "policy"
    with pytest.raises(InvalidInput, match="is a run of a policy"):
        resume(home.records, home.job_queue, recorded_job(home.records, "second"))
    assert {job.request["attempt"] for job in recorded_jobs(home.records)} == {1}


def test_who_looked_at_the_last_attempt_does_not_end_the_next(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow look finds the end of the first attempt, and keeps it when the second has begun."""
    train(home, "first")
    early = recorded_job(home.records, "first")
    statuses = Keeping.statuses

    def slow(_self: Keeping, handles: Mapping[str, JobPaths]) -> dict[str, JobStatus]:
        monkeypatch.setattr(Keeping, "statuses", statuses)
        resume(home.records, home.job_queue, failed(home, "first"))
        return dict.fromkeys(handles, JobStatus("failed", "no GPU"))

    monkeypatch.setattr(Keeping, "statuses", slow)
    refreshed = refresh(home.records, early)
    assert (refreshed.state, refreshed.request["attempt"]) == ("pending", 2)


def test_a_job_names_what_it_was_asked_for(home: Workspace, streets: Dataset) -> None:
    """Dataset, split and settings, in the record's JSON."""
    train(home, "first", max_steps=7, seed=3)
    body = JobBody.of(recorded_job(home.records, "first"))
    assert (body["dataset"], body["split"], body["attempt"]) == ("streets@1", "train", 1)
    assert (body["settings"]["max_steps"], body["settings"]["seed"]) == (7, 3)
    model_folder(home.jobs / "first" / "model")
    submit_validation(
        home.records, home.job_queue, "first", streets, name="second", backend="keeping"
    )
    body = JobBody.of(recorded_job(home.records, "second"))
    assert (body["dataset"], body["split"]) == ("streets@1", "validation")
    assert body["settings"]["model"] == "first"
    with home.records.session() as session:  # as the first releases kept them
        session.query(Job).filter_by(name="first").one().request = {"stages": []}
    body = JobBody.of(recorded_job(home.records, "first"))
    assert (body["dataset"], body["split"], body["settings"]) == ("streets@1", None, {})


@pytest.mark.parametrize("module", ["tensorflow", "horovod"])
def test_a_node_without_the_training_programs_says_so(
    home: Workspace, streets: Dataset, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Where the package is not found: one line with what to install, and no job."""
    monkeypatch.setattr(
        installed, "find_spec", lambda name: None if name == module else find_spec(name)
    )
    with pytest.raises(InvalidInput) as error:
        submit_training(home.records, home.job_queue, streets)
    assert str(error.value) == (
        f"{module} is not installed here: 'uv sync --inexact --extra train' in Framesift's clone "
        "installs it"
    )
    monkeypatch.setattr(installed, "version_info", (3, 13, 0))
    with pytest.raises(InvalidInput, match=r"need Python 3\.11 \(this is 3\.13\)"):
        submit_training(home.records, home.job_queue, streets)
    assert recorded_jobs(home.records) == []


def test_a_network_whose_module_is_not_there_starts_nothing(
    home: Workspace, streets: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looks for it on this machine, without running it; a backend elsewhere has its own."""
    records, queue = home.records, home.job_queue

    def submit(network: str) -> None:
        describe_order(records, queue, streets, Training(workers=1, model=network))

    for network in ("nosuch_net:two", "nosuch_net.wide:two", "__main__:two"):
        with pytest.raises(InvalidInput, match=r"^module \w+, which a network is of.*PYTHONPATH$"):
            submit(network)
    train(home, "first", model="nosuch_net:two")
    model_folder(home.jobs / "first" / "model")
    model = str(model_folder(home.home / "model"))
    for validated, compared in (("first", None), (model, "first")):
        with pytest.raises(InvalidInput, match="module nosuch_net, which a network is of"):
            submit_validation(records, queue, validated, streets, workers=1, compare=compared)
    (tmp_path / "nosuch_net.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(tmp_path)
    submit("nosuch_net:two")
    assert [job.name for job in recorded_jobs(records)] == ["first"]


def test_copies_of_a_home_are_independent(catalogued: Path, tmp_path: Path) -> None:
    """What these tests rely on: a copy's jobs are not the template's."""
    copied = open_home(copy_home(catalogued, tmp_path))
    make(copied, split=SPLIT)
    assert recorded_datasets(open_home(catalogued).records) == []
