"""Frames without a label: what questions get them, and what refuses them by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.frames.frame_page import page_of
from query.frames.one_frame import find_frame
from query.frames.select_frames import select_frames
from query.question.condition import Group, Has, TagIs
from query.question.conditions import vocabulary_of
from query.question.label_range import LabelRange
from query.question.question import Question
from query.question.question_sql import to_sql
from query.statistics.class_statistics import class_report
from query.statistics.population import Frames
from tests.ingest.png_writer import Picture, encode
from tests.ingest.scene_folders import SKY, Home, frame_key, make_tree, put

NAMES = {"car": "Car", "bicycle": "Bicycle", "sky": "Sky"}
LABELLED = [1, 2, 3]
UNLABELLED = [8, 9]


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> CatalogLocation:
    """A catalog of three frames with a label and two without."""
    folder = tmp_path_factory.mktemp("unlabelled")
    location = CatalogLocation.in_folder(folder / "catalog")
    home = Home(CatalogStore(location, threads=1), RecordStore(folder / "records.sqlite"))
    root = make_tree(folder / "tree")
    for number in UNLABELLED:
        put(root, frame_key("camera", number), encode(Picture([[SKY]])))
    home.scan(home.add(root))
    home.store.close()
    return location


@pytest.fixture(scope="module", params=[0, 200], ids=["parquet", "memory"])
def store(request: pytest.FixtureRequest, location: CatalogLocation) -> Iterator[CatalogStore]:
    """The catalog, read from Parquet and from memory."""
    store = CatalogStore(
        location, threads=1, snapshot_memory_mb=request.param, class_names=NAMES.copy
    )
    yield store
    store.close()


QUESTIONS = [
    (Question(), LABELLED),
    (Question(ranges=(LabelRange(tag="car", highest=2),)), [1, 2]),
    (Question(where="sky <= 1 or bicycle is null"), LABELLED),
    (Question(where="scene <> 'labelled'"), LABELLED),
    (Question(condition=Group(kind="none", of=(Has(kind="has", tag="car", pixels=2),))), [1]),
    (Question(where="LABELLED = 0"), UNLABELLED),
    (Question(condition=TagIs(kind="tag", tag="labelled", op="=", value=0)), UNLABELLED),
    (Question(ranges=(LabelRange(tag="labelled", lowest=1, highest=1),)), LABELLED),
    (Question(where="labelled in (0, 1)", cameras=("front_center",)), LABELLED + UNLABELLED),
    (Question(where="labelled = 0 or car = 1"), [1, *UNLABELLED]),
]


@pytest.mark.parametrize(("question", "numbers"), QUESTIONS)
def test_who_names_labelled_decides(
    store: CatalogStore, question: Question, numbers: list[int]
) -> None:
    """Selections, samples, pages and the SQL shown agree; without the tag, labelled frames only."""
    selection = select_frames(store, question)
    assert selection.frames["frame_number"].to_pylist() == numbers
    for row in selection.frames.to_pylist():
        labelled = row["frame_number"] in LABELLED
        assert (row["label_file"] is not None) == (row["label_size"] is not None) == labelled
        assert (row["car"] is not None) == (row["image_width"] is not None) == labelled
        assert row["image_size"] > 0
    drawn = select_frames(store, question.model_copy(update={"sample": 100}))
    assert sorted(drawn.frames["frame_number"].to_pylist()) == numbers
    page = page_of(store, Frames(question), ["frame_number"], 100)
    assert page.rows["frame_number"].to_pylist() == numbers
    with store.reading() as cursor:
        vocabulary = vocabulary_of(cursor)
        text = to_sql(question, vocabulary).text
    assert ("labelled is not null" in text) == question.decides_on_labels


def test_statistics_are_of_labelled_frames(store: CatalogStore) -> None:
    """They count those alone, and refuse the others by name."""
    assert class_report(store).frames == len(LABELLED)
    every = Frames(Question(where="labelled in (0, 1)"))
    with pytest.raises(InvalidInput, match="2 of the question's frames have none"):
        class_report(store, every)
    assert class_report(store, Frames(Question(where="labelled = 1"))).frames == 3


def test_one_of_them(store: CatalogStore) -> None:
    """It is found by its fkey, with its tags and its image."""
    frame = find_frame(store, f"host1:a2d2:{frame_key('camera', 8)}")
    assert (frame.image, frame.label) == (frame_key("camera", 8), None)
    assert (frame.tags["labelled"], frame.tags["car"], frame.tags["front"]) == (0, None, 1)


@pytest.mark.wide
def test_a_dataset_in_memory_of_nothing_else(location: CatalogLocation, tmp_path: Path) -> None:
    """Where no frame has a label, the default question is empty, and asking for them is not."""
    home = Home.at(tmp_path / "home")
    root = make_tree(tmp_path / "tree", frames=0)
    put(root, frame_key("camera", 1), encode(Picture([[SKY]])))
    home.scan(home.add(root))
    assert len(select_frames(home.store, Question())) == 0
    assert len(select_frames(home.store, Question(where="labelled = 0"))) == 1
