"""Datasets that keep the splits of their data set's makers."""

import json
from pathlib import Path

import pytest

from tests.api.servers import framesift
from tests.ingest.label_sets import CAR, add_city_frame, make_city
from tests.pipeline.homes import SAMPLE


@pytest.mark.wide
def test_the_makers_splits_are_kept(tmp_path: Path) -> None:
    """Whatever they call them; made anew it is the same; frames that have none are refused."""
    root, home = make_city(tmp_path / "city"), tmp_path / "home"

    def refused(*arguments: str) -> str:
        done = framesift(home, "dataset", "create", *arguments)
        assert done.returncode == 1
        return done.stderr

    framesift(home, "source", "add", "a2d2", str(SAMPLE))
    framesift(home, "ingest", "a2d2")
    assert "no frame has the tag given_split" in refused("none", "--split-given")
    framesift(home, "source", "add", "city", str(root))
    framesift(home, "ingest", "city")
    of_city = ("--where", "datasource = 'city'")
    made = framesift(home, "dataset", "create", "towns", "--split-given", *of_city)
    assert "6 frames (train 3, validation 3, test 0)" in made.stdout, made.stderr
    assert "splits share 0 scenes" in made.stdout
    shown = json.loads(framesift(home, "dataset", "show", "towns", "--json").stdout)
    assert shown["question"]["split_by"] == "given_split"
    # Of frames that are there twice a sample has one.
    some = framesift(home, "dataset", "create", "some", "--split-given", *of_city,
                     "--range", "car=2:", "--sample", "3", "--order", "car desc")  # fmt: skip
    assert "2 frames (" in some.stdout, some.stderr
    manifest = home / "datasets" / "towns" / "v1" / "frames.parquet"
    before = manifest.read_bytes()
    manifest.unlink()
    rebuilt = framesift(home, "dataset", "rebuild", "towns")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert manifest.read_bytes() == before
    assert "leave the other splits out" in refused("x", "--split-given", "--split", "a=1")
    add_city_frame(root, 9, [CAR], "lindau", "extra")
    framesift(home, "ingest", "city")
    extra = refused("x", "--split-given", *of_city)
    assert "given_split is extra for some frames; expected train," in extra
    alone = ("x", "--split-given", "--where", "datasource = 'a2d2'")
    assert "24 of 24 frames have no given_split: their layout has no {split}" in refused(*alone)
