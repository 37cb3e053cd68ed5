"""ONNX files validated and predicted with: by jobs, over REST, beside predictions and improved."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from api.app import create_app
from api.settings import Settings
from catalog.accounts import tokens, users
from catalog.records.store import RecordStore
from ingest.labels.label_image import decode_label
from pipeline.runs.onnx_file import read_onnx
from tests.api.servers import framesift
from tests.training.drawn_frames import CLASSES, HEIGHT_PX, WIDTH_PX
from tests.training.drawn_home import ask, drawn_home
from tests.training.onnx_files import colour_network, colour_weights

pytestmark = pytest.mark.wide

FRAMES = 4


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the dataset few, and networks of its frames' own size."""
    base = tmp_path_factory.mktemp("onnx")
    drawn_home(base, FRAMES)
    size = (HEIGHT_PX, WIDTH_PX)
    colour_network(base / "net.onnx", len(CLASSES), size=size)
    colour_network(base / "net-2.onnx", len(CLASSES), size=size, weights=-colour_weights(4))
    colour_network(
        base / "ids.onnx",
        len(CLASSES),
        size=size,
        ends=["ArgMax"],
        metadata={"scale": "1", "name": "ids-net"},
    )
    return base


def _predicted(base: Path) -> dict[str, Any]:
    """Each frame's best classes by net.onnx, worked out by NumPy, by its image's name."""
    root = base / "source"
    return {
        path.relative_to(root).as_posix(): _best(np.asarray(Image.open(path)))
        for path in sorted(root.rglob("*_camera_*.png"))
    }


def _best(image: Any) -> Any:
    return (image.astype(np.float32) @ colour_weights(len(CLASSES)).T).argmax(-1).astype(np.uint8)


def _matrix(base: Path) -> list[list[int]]:
    matrix = np.zeros((len(CLASSES),) * 2, int)
    for name, ids in _predicted(base).items():
        label = base / "source" / name.replace("camera/", "label/").replace("_camera_", "_label_")
        np.add.at(matrix, (decode_label(label.read_bytes(), CLASSES), ids), 1)
    rows: list[list[int]] = matrix.tolist()
    return rows


def _report(base: Path, job: str) -> dict[str, Any]:
    folder = base / "home" / "jobs" / job / "report"
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def test_a_network_of_a_file_is_validated_as_any_model(base: Path) -> None:
    """Over two workers: NumPy's confusion matrix, lineage, scores; compared with predictions."""
    home, path = base / "home", base / "net.onnx"
    first = ask(home, "validate", str(path), "few", "--name", "first", "--workers", "2")
    report, file = _report(base, "first"), read_onnx(path)
    assert report["confusion_matrix"] == _matrix(base)
    assert sum(map(sum, report["confusion_matrix"])) == FRAMES * HEIGHT_PX * WIDTH_PX
    assert report["model"]["name"] == "net"
    assert report["model"]["sha256"] == file.sha256
    record = report["lineage"]["onnx"]
    assert (record["producer"], record["version"], record["file"]) == ("tests 3", 5, str(path))
    assert (first["settings"]["model_name"], first["settings"]["model"]) == ("net", str(path))
    assert 0 < report["uncertainty"] < 1
    assert report["calibration"]["ece"] is not None
    log = (home / "jobs" / "first" / "logs" / "check-0.log").read_text()
    assert "4 classes, by CPUExecutionProvider" in log
    assert "tests 3, version 5" in (home / "jobs/first/report/report.html").read_text()
    for name, ids in _predicted(base).items():
        (base / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(ids).save(base / "out" / name)
    given = ask(
        home, "validate", "few", "--predictions", str(base / "out"), "--model-name", "given",
        "--compare", str(path), "--name", "given",
    )  # fmt: skip
    compared = _report(base, "given")
    assert compared["confusion_matrix"] == report["confusion_matrix"]
    assert given["metrics"]["compared_with"] == "net"
    assert compared["comparison"]["scores"][0]["difference"] == 0
    other = ask(
        home, "validate", str(base / "net-2.onnx"), "few", "--compare", "first", "--model-name",
        "other", "--name", "other",
    )  # fmt: skip
    assert other["metrics"]["compared_with"] == "net"
    assert _report(base, "other")["comparison"]["scores"][0]["other"] == report["miou"]
    written = ask(home, "tags", "import-scores", "first")
    assert (written["model"], written["frames"]) == ("net", FRAMES)
    asked = ask(home, "select", "--model", "net", "--tag", "uncertainty>=0")
    assert len(asked["frames"]) == FRAMES


def test_a_network_predicts_without_probabilities(base: Path) -> None:
    """Class ids alone: pictures and pixels of each class, and no word of how sure it is."""
    home = base / "home"
    job = ask(home, "predict", str(base / "ids.onnx"), "few", "--name", "seen")
    metrics = json.loads((home / "jobs/seen/report/metrics.json").read_text())
    assert (metrics["uncertainty"], metrics["margin"]) == (None, None)
    assert metrics["model"] == {
        "name": "ids-net", "sha256": read_onnx(base / "ids.onnx").sha256,
    }  # fmt: skip
    predicted = _predicted(base)
    counts = np.bincount(np.stack([*predicted.values()]).ravel(), minlength=len(CLASSES))
    assert [*metrics["predicted_pixels"].values()] == counts.tolist()
    pictures = sorted((home / "jobs/seen/results").rglob("*.png"))
    assert [np.asarray(Image.open(path)).tolist() for path in pictures] == [
        ids.tolist() for ids in predicted.values()
    ]
    assert job["settings"]["model_name"] == "ids-net"


def test_a_program_that_writes_a_network_is_a_model_over_rest(base: Path) -> None:
    """By the name of its job alone; a path is none, nor a job that wrote nothing."""
    home, path = base / "home", base / "net.onnx"
    for name, target in (("taught", "model.onnx"), ("taught-2", "other.txt")):
        code = f"import shutil, sys; shutil.copy('{path}', sys.argv[1] + '/{target}')"
        command = f'{sys.executable} -c "{code}" {{job}}'
        ask(home, "run", "few", "--name", name, "--command", command)
    records = RecordStore(home / "records" / "records.sqlite")
    users.add(records, "dora", ["dataadmin"], None)
    secret = tokens.create(records, "dora", "t", "admin", timedelta(days=1))[1]
    with TestClient(create_app(Settings(home=home))) as client:
        for more, status, words in (
            ({"model": str(path)}, 404, "name of a training job"),
            ({"model": "taught-2"}, 400, "wrote no ONNX file"),
            ({"model": "taught/../../net.onnx"}, 404, "leads out of what the job made"),
            ({"model": "taught", "onnx": {"size": "8"}}, 400, "expected WIDTHxHEIGHT"),
            ({"model": "taught", "onnx": {"scale": "1", "mean": "0" * 300}}, 422, "mean"),
            ({"model": "taught"}, 200, "training.check_onnx"),
        ):
            body = {"kind": "validate", "dataset": "few", "workers": 1, **more}
            headers = {"authorization": f"Bearer {secret}"}
            answer = client.post("/v1/jobs/dry-run", json=body, headers=headers)
            assert (answer.status_code, words in answer.text) == (status, True), answer.text
    ask(home, "validate", "taught", "few", "--name", "asked", "--workers", "1")
    report = _report(base, "asked")
    assert (report["model"]["name"], report["confusion_matrix"]) == ("taught", _matrix(base))


def test_what_cannot_be_run_ends_before_any_frame(base: Path, tmp_path: Path) -> None:
    """Refused where it is asked for, or by the job's first step; a training answers for itself."""
    home = base / "home"
    for options, words in (
        ([], "give --onnx scale=1"),
        (["--onnx", "scale=1", "--classes", "a2d2-8"], "[1, 4, h, w]; expected logits"),
        (["--onnx", "scale=1,kind=ids"], "or class ids [1, h, w] of integers"),
        (["--onnx", "scale=1", "--model-name", "a b"], "model name 'a b'"),
    ):
        path = colour_network(
            tmp_path / "raw.onnx", len(CLASSES), size=(HEIGHT_PX, WIDTH_PX), metadata={}
        )
        run = framesift(home, "validate", str(path), "few", *options)
        assert (run.returncode != 0, words in run.stderr) == (True, True), run.stderr
    path = colour_network(
        tmp_path / "bad.onnx", len(CLASSES), size=(HEIGHT_PX, WIDTH_PX), ends=["Frobnicate"]
    )
    run = framesift(home, "validate", str(path), "few", "--name", "unknown")
    assert "bad.onnx: cannot be loaded by onnxruntime" in run.stderr
    assert "Frobnicate" in run.stderr
    assert not (home / "jobs/unknown/results").exists()
