"""docs/pytorch-loop.md: its commands are run as they stand, with PyTorch."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.api.servers import framesift, serving
from tests.pipeline.homes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "pytorch-loop.md").read_text(encoding="utf-8")
TORCH = REPOSITORY / ".venv-readers"
CAR, BUILDING, UNLABELLED = 8, 1, 11

pytestmark = [
    pytest.mark.readers,
    pytest.mark.skipif("CAMVID_ROOT" not in os.environ, reason="CAMVID_ROOT is unset"),
]


def commands(name: str) -> list[list[str]]:
    """The arguments of each command below the page's mark of that name."""
    match = re.search(rf"<!-- example: {name} -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
    assert match, name
    text = match[1].replace("/data/camvid", os.environ["CAMVID_ROOT"])
    lines = [shlex.split(line) for line in text.splitlines()]
    assert {line[0] for line in lines} == {"framesift"}
    return [line[1:] for line in lines]


def label_of(fkey: str) -> Any:
    """The class ids of a frame's label, as NumPy reads them."""
    (path,) = Path(os.environ["CAMVID_ROOT"]).glob(f"labels/*/{Path(fkey).stem}.png")
    return np.asarray(Image.open(path))


def test_the_page_s_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is trained, scored, asked for and improved; the next one is compared with it.

    Matrix, cells and what is asked by them are NumPy's counts of the same files.
    """
    home = tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    # As an active environment in which framesift is installed.
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    active = {
        "VIRTUAL_ENV": str(TORCH), "PATH": f"{TORCH / 'bin'}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    shutil.copy(REPOSITORY / "docs" / "examples" / "loop_pytorch.py", tmp_path)

    def run(name: str) -> list[str]:
        printed = []
        for arguments in commands(name):
            done = framesift(home, *arguments, variables=active)
            assert done.returncode == 0, (arguments, done.stdout, done.stderr)
            printed.append(done.stdout)
        return printed

    def report(job: str) -> dict[str, Any]:
        path = home / "jobs" / job / "report" / "report.json"
        content: dict[str, Any] = json.loads(path.read_text())
        return content

    *_, created = run("dataset")
    assert "150 frames (train 101, validation 49)" in created
    run("first")
    curve = (home / "jobs" / "first" / "output" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line) for line in curve]
    assert [line["step"] for line in losses] == [*range(10, 91, 10)]
    assert losses[-1]["value"] < losses[0]["value"] < 3
    run("scores")
    place = tmp_path / "predictions" / "first"
    paths = sorted(place.rglob("*.png"))
    assert len(paths) == 49
    matrix, cars = np.zeros((12, 12), int), {}
    for path in paths:
        predicted, truth = np.asarray(Image.open(path)), label_of(path.name)
        np.add.at(matrix, (truth, predicted), 1)
        cars[path.stem] = int(((truth == CAR) & (predicted == BUILDING)).sum())
    scored = report("first-scores")
    assert scored["confusion_matrix"] == matrix[:UNLABELLED, :UNLABELLED].tolist()
    assert (scored["trained_frames"], scored["model"]["name"]) == (0, "first")
    run("onnx")
    of_onnx = np.array(report("onnx-scores")["confusion_matrix"])
    moved = np.abs(of_onnx - scored["confusion_matrix"]).sum() / 2
    assert moved < of_onnx.sum() / 1000
    imported, uncertain, confused = run("ask")
    assert "scores of 49 frames" in imported
    assert uncertain.splitlines()[-1].startswith("3 frames")
    scores = pq.read_table(home / "jobs" / "first-scores" / "report" / "frame_scores.parquet")
    lost = {Path(row["fkey"]).stem for row in scores.to_pylist() if row["loss"] >= 1}
    asked = {name for name, pixels in cars.items() if pixels >= 5000} & lost
    assert 0 < len(asked) < 49
    assert {*re.findall(r"(\w+)\.jpg", confused)} == asked

    with serving(home) as (url, _):
        page = httpx.get(f"{url}/jobs/first-scores", timeout=60).text
        places = [scored["classes"].index(name) for name in ("Car", "Building")]
        linked = "/jobs/first-scores/frames?cell={}.{}".format(*places)
        assert f'href="{linked}"' in page
        named = "/jobs/first-scores/frames?truth=Car&predicted=Building"
        assert named in PAGE
        most = max(cars, key=lambda name: cars[name])
        for address in (linked, named):
            assert most in httpx.get(f"{url}{address}", timeout=60).text
    (improved,) = run("improve")
    assert "drives@2: 60 frames more" in improved
    run("second")
    second = report("second-scores")
    assert 0.1 < scored["miou"] < second["miou"]
    (miou,) = (one for one in second["comparison"]["scores"] if one["score"] == "miou")
    assert (miou["other"], miou["difference"]) == (scored["miou"], second["miou"] - scored["miou"])
