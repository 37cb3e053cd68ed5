"""Predictions that another program made: validated, compared, asked for, at home and over REST."""

import json
import shlex
import sys
import tarfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from api.app import create_app
from api.services.session import Session
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from catalog.storage.atomic_write import atomic_write
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.label_image import decode_label
from pipeline.runs.prediction_set import PREDICTIONS_FILE, PredictionSet, prediction_name
from tests.api.servers import framesift
from tests.ingest.s3_server import moto
from tests.pipeline.homes import copy_home, open_home
from tests.training.commands import run_forked
from tests.training.drawn_frames import CLASSES
from tests.training.drawn_home import ask, drawn_home

pytestmark = pytest.mark.wide

FRAMES = 4
CAR, STREET = CLASSES.classes.index("Car"), CLASSES.classes.index("RD normal street")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the dataset few, and the predictions `good`, `bad` and `short` of its frames."""
    base = tmp_path_factory.mktemp("predicted")
    drawn_home(base, FRAMES)
    for place, ids in ((p, ids) for p in ("good", "bad", "short") for ids in _labels(base).items()):
        name, truth = ids
        if (place, name[-5]) == ("short", "2"):
            continue
        predicted = np.roll(truth, 1, axis=1) if place == "good" else _without_cars(name, truth)
        path = base / place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(predicted).save(path)
    return base


def _labels(base: Path) -> dict[str, Any]:
    """Each frame's label as class ids, by its image's name below the source."""
    root = base / "source"
    return {
        path.relative_to(root).as_posix().replace("label", "camera"): decode_label(
            path.read_bytes(), CLASSES
        )
        for path in sorted(root.rglob("*_label_*.png"))
    }


def _without_cars(name: str, truth: Any) -> Any:
    """In frames of an odd number cars are taken for street."""
    is_odd = int(name[-5]) % 2 == 1
    return np.where((truth == CAR) & is_odd, STREET, truth).astype(np.uint8)


def _matrix(pairs: list[tuple[Any, Any]]) -> list[list[int]]:
    """Pixels of each class of a label, by the class that is predicted."""
    matrix = np.zeros((len(CLASSES),) * 2, int)
    for truth, predicted in pairs:
        known = truth != UNKNOWN_CLASS
        np.add.at(matrix, (truth[known], predicted[known]), 1)
    rows: list[list[int]] = matrix.tolist()
    return rows


def _report(base: Path, job: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(
        (base / "home" / "jobs" / job / "report" / "report.json").read_text()
    )
    return report


def test_predictions_go_the_way_of_a_model(base: Path) -> None:
    """Validated, compared with others, their scores imported, and asked for by confusion."""
    home, labels = base / "home", _labels(base)
    options = ["--model-info", "commit=4f2a91c,version=3", "--workers", "2"]
    first = ask(
        home, "validate", "few", "--predictions", str(base / "bad"), "--model-name", "night-1",
        "--name", "first", *options,
    )  # fmt: skip
    assert first["settings"] == {
        "predictions": str(base / "bad"), "model_name": "night-1", "workers": 2, "split": "all",
        "model_info": {"commit": "4f2a91c", "version": "3"},
    }  # fmt: skip
    pairs = [(truth, _without_cars(name, truth)) for name, truth in labels.items()]
    confused = [
        name
        for name, (truth, predicted) in zip(labels, pairs, strict=True)
        if ((truth == CAR) & (predicted == STREET)).any()
    ]
    assert 0 < len(confused) < FRAMES
    report = _report(base, "first")
    assert report["confusion_matrix"] == _matrix(pairs)
    assert (report["model"]["name"], report["uncertainty"]) == ("night-1", None)
    second = ask(
        home, "validate", "few", "--predictions", str(base / "good"), "--model-name", "night-2",
        "--name", "second", "--compare", "first",
    )  # fmt: skip
    other = _report(base, "second")
    assert second["metrics"]["compared_with"] == "night-1"
    assert other["comparison"]["scores"][0]["other"] == report["miou"]
    written = ask(home, "tags", "import-scores", "first")
    assert (written["model"], written["frames"]) == ("night-1", FRAMES)
    assert written["scores"] == ["accuracy", "miou"]  # without probabilities
    said = framesift(home, "tags", "import-scores", "first").stdout
    assert "select --model night-1 --tag 'accuracy<0.8' asks for them" in said
    where = "confusion(car, rd_normal_street) >= 1"
    asked = ask(home, "select", "--model", "night-1", "--where", where)
    assert sorted(row["fkey"] for row in asked["frames"]) == sorted(
        row["fkey"] for row in ask(home, "select")["frames"] if row["fkey"].endswith((*confused,))
    )
    families = {one["name"]: one["columns"] for one in ask(home, "tags", "families")}
    assert sorted(families["scores_night_1"]) == ["night_1_accuracy", "night_1_miou"]


def question_of(home: Path, job: str) -> list[str]:
    """The arguments of the command that a validation's last line says to run next."""
    *_, line = framesift(home, "jobs", "show", job).stdout.splitlines()
    told, found, command = line.partition("): framesift ")
    assert told.startswith("next: "), line
    assert " is found worst (IoU " in told, line
    assert found, line
    return shlex.split(command)


def test_a_model_is_improved_by_what_its_predictions_lack(catalogued: Path, tmp_path: Path) -> None:
    """What it was trained on grows by frames of other scenes; the report knows what it knows."""
    home, place = copy_home(catalogued, tmp_path), tmp_path / "out"
    ask(home, "select", "--scene", "20260311_130314", "--save", "taught")
    ask(home, "select", "--scene", "20260507_155109", "--save", "held")
    frames = ask(home, "select", "--scene", "20260507_155109")["frames"]
    for frame in frames:
        path = place / prediction_name(frame["fkey"])
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((1208, 1920), np.uint8)).save(path)
    command = ["validate", "--predictions", str(place), "--model-name"]
    more = ["--named-by", "fkey"]
    untold = ask(home, *command, "untold", "held", *more)
    run = framesift(home, "improve", "untold", "--frames", "3")
    assert "no validation says what it was trained on" in run.stderr
    job = ask(home, *command, "told", "held", *more, "--trained-on", "taught")
    assert job["settings"]["trained_on"] == "taught@1"
    assert job["metrics"]["trained_frames"] == 0
    remembered = ask(home, *command, "told-2", "held", *more, "--trained-on", "held")
    assert remembered["metrics"]["trained_frames"] == len(frames)
    dry = framesift(home, "improve", "told", "--frames", "3", "--dry-run")
    assert "taught@1 would get 3 frames more" in dry.stdout
    proposal = ask(home, "improve", "told", "--frames", "3", "--dry-run")
    assert proposal["dataset"] is None
    assert all(fkey in dry.stdout.replace("\n", "") for fkey in proposal["to_add"])
    run = framesift(home, "improve", "told", "--frames", "3", "--train", "--dry-run")
    assert "goes without --dry-run" in run.stderr
    improved = ask(home, "improve", "told", "--frames", "3")
    assert improved["to_add"] == proposal["to_add"]
    assert (improved["model"], improved["validation"]) == ("told", job["name"])
    assert (improved["dataset"]["version"], improved["dataset"]["report"]["added"]) == (2, 3)
    asked = question_of(home, job["name"])
    assert asked[:3] == ["improve", "told", "--for"]
    run = framesift(home, *asked, "--frames", "2")
    assert run.returncode == 0, run.stderr
    assert "taught@3: 2 frames more" in run.stdout
    asked = question_of(home, untold["name"])
    assert asked == ["tags", "import-scores", untold["name"]]
    assert framesift(home, *asked).returncode == 0
    run = framesift(home, "improve", "told", "--frames", "3", "--train")
    assert run.returncode == 1
    assert "told" in run.stderr
    dropped, *kept = proposal["to_add"]
    at = str(proposal["snapshot"])
    told = ask(home, "improve", "told", "--frames", "3", "--at", at, "--drop", dropped)
    assert (told["to_add"], told["dataset"]["report"]["dropped"]) == (kept, 1)
    run = framesift(home, "improve", "toll", "--frames", "3")
    assert "expected the name of a training job" in run.stderr


def test_what_is_missing_is_named_and_may_be_left_out(base: Path) -> None:
    """The job fails and names the frame; resumed with --bad-frames it leaves that out."""
    home = base / "home"
    command = ["validate", "few", "--predictions", str(base / "short"), "--model-name", "night-1"]
    failed = framesift(home, *command, "--name", "lacking")
    assert failed.returncode == 1
    assert "1 of 4 frames cannot be read" in failed.stderr
    assert "has no prediction" in failed.stderr
    resumed = framesift(home, "jobs", "resume", "lacking", "--bad-frames", "skip")
    assert resumed.returncode == 0, resumed.stderr
    (row,) = _report(base, "lacking")["skipped_frames"]
    assert row["fkey"].endswith("2.png")


_LOOP = """
import json, os, sys
from pathlib import Path
import numpy as np
from PIL import Image
from framesift.data import Scores, open_frames

frames = open_frames(sys.argv[1])
scores = Scores(dataset=frames)
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for number, name in [*enumerate(frames.names)][rank::ranks]:
    _, label = frames[number]
    odd = int(name[-5]) % 2 == 1
    scores.add(name, np.where((label == 2) & odd, 1, label))
"""


def test_a_program_s_scores_are_validated_by_its_job_s_name(base: Path, tmp_path: Path) -> None:
    """Two ranks add to Scores; report, comparison and tags are those of the same predictions."""
    home, program = base / "home", tmp_path / "loop.py"
    program.write_text(_LOOP)
    assert (CAR, STREET) == (2, 1)
    command = f"{sys.executable} {program} {{manifest}}"
    ask(home, "run", "few", "--ranks", "2", "--name", "loop", "--command", command)
    options = ["--model-name", "night-5", "--slices", "camera"]
    by_folder = ask(
        home, "validate", "few", "--predictions", str(base / "bad"), "--name", "by-folder",
        *options,
    )  # fmt: skip
    by_scores = ask(
        home, "validate", "few", "--scores", "loop", "--name", "by-scores", *options,
        "--compare", "by-folder",
    )  # fmt: skip
    assert by_scores["settings"]["scores"] == "loop"
    one, other = (_report(base, name) for name in ("by-folder", "by-scores"))
    comparison = other["comparison"]
    assert (comparison["model"]["name"], comparison["scores"][0]["difference"]) == ("night-5", 0)
    for report in (one, other):
        assert len(report.pop("warnings")) == (2 if report["comparison"] else 1)
        for differing in ("comparison", "lineage"):
            report.pop(differing)
        report["model"].pop("dir")
    assert one == other
    assert by_folder["metrics"]["miou"] == by_scores["metrics"]["miou"]
    again = ask(
        home, "validate", "few", "--predictions", str(base / "good"), "--name", "again",
        "--model-name", "night-6", "--compare", "by-scores",
    )  # fmt: skip
    assert again["metrics"]["compared_with"] == "night-5"
    for scores, message in (
        ("by-scores", "is a job of kind validate, not run"),
        ("lop", "lop"),
        (str(base / "good"), "has no scores.json"),
    ):
        run = framesift(home, "validate", "few", "--scores", scores, "--model-name", "x")
        assert run.returncode == 1
        assert message in run.stderr
    run = framesift(
        home, "validate", "few", "--scores", "loop", "--model-name", "x", "--classes", "a2d2-8"
    )
    assert "are of 4 classes" in run.stderr


SECRET = "never-in-a-job's-files"


def test_predictions_on_a_server_are_fetched_by_their_source_s_keys(base: Path) -> None:
    """A step brings them, from a prefix and a tar; the report is theirs; programs get no key.

    The bucket `out-private` has others, of a source with keys of its own. What the prefix lacks is
    fetched when the job is resumed.
    """
    home, s3 = base / "home", moto()
    for bucket in ("out", "out-private"):
        s3.new_bucket(bucket)
    with tarfile.open(base / "good.tar", "w") as archive:
        archive.add(base / "good", ".")
    tar = (base / "good.tar").read_bytes()
    s3.client().put_object(Bucket="out-private", Key="good.tar", Body=tar)
    workspace = open_home(home)
    sources = Session(workspace, is_command=True).sources
    for name in ("out", "out-private"):
        keys = {"endpoint_url": s3.endpoint, "access_key": name, "secret_key": SECRET}
        sources.add(name, f"s3://{name}", layout="a2d2", **keys)
    workspace.close()
    prefix = [
        "validate", "few", "--predictions", "s3://out/night", "--model-name", "night-8",
        "--name", "of-prefix",
    ]  # fmt: skip
    empty = framesift(home, *prefix)
    assert empty.returncode == 1
    assert "s3://out/night: no object below it" in empty.stderr
    s3.put_folder("out", base / "short", "night/")
    assert framesift(home, "jobs", "resume", "of-prefix").returncode == 1
    (missing,) = {path.name for path in (base / "bad").rglob("*.png")} - {
        path.name for path in (base / "short").rglob("*.png")
    }
    (path,) = (base / "bad").rglob(missing)
    key = f"night/{path.relative_to(base / 'bad').as_posix()}"
    s3.client().put_object(Bucket="out", Key=key, Body=path.read_bytes())
    resumed = framesift(home, "jobs", "resume", "of-prefix")
    assert resumed.returncode == 0, resumed.stderr
    log = (home / "jobs" / "of-prefix" / "steps" / "fetch" / "logs").rglob("*.log")
    said = "".join(path.read_text() for path in log)
    counts = [f"{count} files were fetched" for count in ("3 of 3", "1 of 4")]
    assert [count for count in counts if count in said] == counts
    for path in (home / "jobs" / "of-prefix").rglob("*"):
        assert not path.is_file() or b"sealed_keys" not in path.read_bytes()
    job = ask(
        home, "validate", "few", "--predictions", "s3://out-private/good.tar", "--name", "of-tar",
        "--model-name", "night-9", "--compare", "of-prefix",
    )  # fmt: skip
    assert [task["name"] for task in job["tasks"]] == [
        "stage", "fetch", "prepare", "run", "collect",
    ]  # fmt: skip
    of_prefix, of_tar = (_report(base, name) for name in ("of-prefix", "of-tar"))
    assert of_prefix["lineage"]["predictions"]["place"] == "s3://out/night"
    assert of_tar["lineage"]["predictions"]["place"] == "s3://out-private/good.tar"
    assert of_tar["comparison"]["scores"][0]["other"] == of_prefix["miou"] != of_tar["miou"]
    labels = _labels(base).items()
    bad = [(truth, _without_cars(name, truth)) for name, truth in labels]
    good = [(truth, np.roll(truth, 1, axis=1)) for _, truth in labels]
    assert of_prefix["confusion_matrix"] == _matrix(bad)
    assert of_tar["confusion_matrix"] == _matrix(good)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["few"], "give a dataset, or the question"),
        (["few", "--predictions", "p"], "give model name, too"),
        (["first", "few", "--model-name", "x"], "model name: goes with predictions"),
        (["few", "--predictions", "p", "--model-name", "a b"], "model name 'a b': expected"),
        (
            ["few", "--predictions", "p", "--model-name", "x", "--augment-test", "mirror"],
            "no network runs",
        ),
        (["few", "--predictions", "p", "--model-name", "x", "--encoding", "q"], "encoding 'q'"),
        (["few", "--predictions", "p", "--model-name", "x", "--encoding", "a2d2"], "to a file"),
        (["few", "--predictions", "p", "--model-name", "x", "--encoding", "Q/q"], "--encoding Q/q"),
        (["few", "--predictions", "p", "--scores", "q", "--model-name", "x"], "one of the two"),
        (["few", "--predictions", "p", "--model-name", "x"], "p: there is no such folder or .tar"),
        (["few", "--scores", "q"], "scores q: give model name, too"),
        (["few", "--scores", "q", "--model-name", "x", "--named-by", "fkey"], "goes with predict"),
        (["--predictions", "p", "--model-name", "x"], "give a dataset, or the question"),
    ],
)
def test_what_a_command_refuses(base: Path, options: list[str], message: str) -> None:
    """Each wrong combination says what goes with what, and no job begins."""
    ended = framesift(base / "home", "validate", *options)
    assert ended.returncode in (1, 2)
    assert message in " ".join(ended.stderr.split())


@pytest.fixture(scope="module")
def served(base: Path) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """The home, served, whose users may name `good`; tokens of an admin and of a user."""
    home = base / "home"
    records, secrets = RecordStore(home / "records" / "records.sqlite"), {}
    row_collections.add(records, "all", "size >= 0")
    for name, role in (("root", "admin"), ("dora", "dataadmin"), ("cora", "collectionadmin")):
        users.add(records, name, [role], None)
        secrets[name] = tokens.create(records, name, "t", "admin", timedelta(days=1))[1]
    row_collections.assign(records, "all", "cora")
    settings = Settings(home=home, cache=base / "cache", source_roots=(base / "good",))
    with TestClient(create_app(settings)) as client:
        yield client, secrets


@pytest.mark.parametrize(
    ("user", "place", "status"),
    [
        ("dora", "good", 200),
        ("dora", "bad", 403),
        ("dora", "good/../bad", 403),
        ("root", "bad", 200),
    ],
)
def test_a_server_reads_predictions_only_where_it_lets_sources_be(
    base: Path, served: tuple[TestClient, dict[str, str]], user: str, place: str, status: int
) -> None:
    """Users name places below the server's roots; an admin names any; a list is one, too."""
    client, secrets = served
    headers = {"authorization": f"Bearer {secrets[user]}"}
    body = {
        "kind": "validate", "dataset": "few", "predictions": str(base / place),
        "model_name": "night-3",
    }  # fmt: skip
    answer = client.post("/v1/jobs/dry-run", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    listed = {**body, "predictions": str(base / "good"), "named_by": str(base / place / "l.csv")}
    answer = client.post("/v1/jobs/dry-run", json=listed, headers=headers)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("user", "place", "status"),
    [
        ("dora", "s3://out/night", 200),
        ("cora", "s3://out/night", 403),
        ("dora", "gs://out/night", 400),
    ],
)
def test_users_of_collections_name_no_place_on_a_server(
    served: tuple[TestClient, dict[str, str]], user: str, place: str, status: int
) -> None:
    """The keys of sources, and the server's own, are of those who see every row."""
    client, secrets = served
    headers = {"authorization": f"Bearer {secrets[user]}"}
    body = {"kind": "validate", "dataset": "few", "predictions": place, "model_name": "night-3"}
    path = "/v1/jobs" if status == 403 else "/v1/jobs/dry-run"
    answer = client.post(path, json=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert ("users who see every row" in answer.text) == (status == 403)


def test_an_order_s_places_stay_fenced_when_its_job_runs(
    base: Path, served: tuple[TestClient, dict[str, str]], tmp_path: Path
) -> None:
    """What the job opens is kept below the root that let the user name it; an admin's is not.

    A link that is put in the folder's place after the order leads nowhere.
    """
    client, secrets = served
    place = base / "good" / "moved"
    place.symlink_to(base / "good" / "camera_lidar_semantic")
    body = {"kind": "validate", "dataset": "few", "predictions": str(place), "model_name": "n"}
    described = {}
    for user in ("root", "dora"):
        headers = {"authorization": f"Bearer {secrets[user]}"}
        answer = client.post("/v1/jobs", json={**body, "name": f"of-{user}"}, headers=headers)
        assert answer.status_code == 202, answer.text
        folder = base / "home" / "jobs" / f"of-{user}" / "predictions" / "n"
        described[user] = PredictionSet.read(folder)
        client.post(f"/v1/jobs/of-{user}/cancel", headers=headers)
    for user, within in (("root", ""), ("dora", str(base / "good"))):
        given = described[user]
        assert given is not None
        assert given.options.get("within", "") == within
    place.unlink()
    place.symlink_to(base / "bad")
    manifest = next((base / "cache").rglob("manifest.json")).parent
    for user, status in (("root", 0), ("dora", 1)):
        given = described[user]
        assert given is not None
        folder = tmp_path / user
        atomic_write(folder / PREDICTIONS_FILE, json.dumps(given.as_json()), parents=True)
        flags = ["--predictions_dir", str(folder), "--manifest", str(manifest)]
        ended = run_forked("-m", "training.match_predictions", *flags)
        assert (ended.status, "leads out of" in ended.err) == (status, status == 1), ended.err
    place.unlink()
