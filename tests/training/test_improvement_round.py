"""A round of improving a model: more data, then trained and validated as the model was."""

import json
from pathlib import Path

import pytest

from tests.api.servers import framesift
from tests.pipeline.homes import copy_home
from tests.training.drawn_home import ask

pytestmark = pytest.mark.training


def test_a_round_trains_and_validates_as_before(catalogued: Path, tmp_path: Path) -> None:
    """Every setting but the parent is the former training's; `--json` prints one document."""
    home = copy_home(catalogued, tmp_path)
    for name, scene in (("few", "20260311_130314"), ("held", "20260507_155109")):
        ask(home, "select", "--scene", scene, "--save", name)
    first = ask(
        home, "train", "few", "--name", "first", "--workers", "1", "--max-steps", "2",
        "--batch-size", "2", "--height", "64", "--width", "96", "--classes", "a2d2-8",
        "--augment", "mirror", "--precision", "float32", "--bad-frames", "skip",
        "--resource", "cores=1",
    )  # fmt: skip
    before = ask(home, "validate", "first", "held", "--workers", "1", "--augment-test", "mirror")
    run = framesift(home, "improve", "first", "--frames", "0", "--label", "5")
    assert run.stdout.startswith("no frame to label: the catalog has none"), run.stderr
    run = framesift(home, "improve", "first", "--frames", "3", "--train", "--validate", "--json")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    training, validated = told["training"], told["validated"]
    assert told["validation"] == before["name"]
    assert (training["dataset"], training["state"], validated["state"]) == ("few@2", "done", "done")
    assert training["settings"] == {**first["settings"], "continue_from": "first"}
    assert training["request"]["resources"] == first["request"]["resources"]
    assert validated["settings"] == {**before["settings"], "model": training["name"]}
