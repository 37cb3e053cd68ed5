"""What is said of frames that `!=` leaves out, and the operator that chooses them."""

from pathlib import Path

import pyarrow as pa
import pytest

from catalog.store import CatalogStore
from catalog.tags.families import write
from query.frames.count_frames import count_frames
from query.question.condition_text import parse_tag
from query.question.describe import describe
from query.question.question import Question
from query.question.unknown_values import unknown_values
from tests.query import catalogs
from tests.query.catalogs import drawn_frames

FRAMES = sorted(drawn_frames(), key=lambda one: one.fkey)


@pytest.fixture(scope="module")
def store(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """Frames 0 and 1 of quality bad, 2 good; all but frame 3 of quality_2 ok; all of number 1."""
    store = catalogs.drawn(catalogued, tmp_path_factory.mktemp("marked"))
    marked = pa.table(
        {"fkey": [frame.fkey for frame in FRAMES[:3]], "quality": ["bad", "bad", "good"]}
    )
    write(store, "own", {"quality": "VARCHAR"}, marked)
    every = [frame.fkey for frame in FRAMES]
    others = pa.table({"fkey": [fkey for fkey in every if fkey != every[3]]})
    write(store, "own", {"quality_2": "VARCHAR"}, _all(others, "quality_2", "ok"))
    write(store, "full", {"number": "INTEGER"}, _all(pa.table({"fkey": every}), "number", 1))
    return store


def _all(fkeys: pa.Table, tag: str, value: object) -> pa.Table:
    return fkeys.append_column(tag, pa.array([value] * fkeys.num_rows))


def asked(*tags: str, **more: object) -> Question:
    """A question as the command line asks it."""
    of = [parse_tag(text).model_dump() for text in tags]
    return Question.model_validate({"condition": {"kind": "all", "of": of}, **more})


def test_frames_without_the_tag_are_named(store: CatalogStore) -> None:
    """How many fulfil the other conditions, and the operator; nothing where none is unknown."""
    unknown = len(FRAMES) - 3
    told = (
        "frames have no quality, so they are left out: 'quality not_known_to_be bad' chooses "
        "them, too"
    )
    assert unknown_values(store, asked("quality!=bad")) == f"{unknown} {told}"
    assert count_frames(store, asked("quality!=bad"))[0] == 1
    assert count_frames(store, asked("quality not_known_to_be bad"))[0] == unknown + 1
    assert count_frames(store, asked("quality not_known_to_be good"))[0] == unknown + 2
    both = ("quality not_known_to_be bad", "quality not_known_to_be good")
    assert count_frames(store, asked(*both))[0] == unknown
    camera = FRAMES[0].camera
    of_camera = sum(frame.camera == camera for frame in FRAMES[3:])
    assert 0 < of_camera < unknown
    assert unknown_values(store, asked("quality!=bad", cameras=[camera])).startswith(
        f"{of_camera} "
    )
    # Of frame 3 neither tag is known.
    of_both = unknown_values(store, asked("quality!=bad", "quality_2!=x", where="number = 1"))
    assert of_both == f"{unknown - 1} {told}"
    assert unknown_values(store, asked("quality not_in bad,dark")) == (
        f"{unknown} frames have no quality, so they are left out: 'quality not_known_to_be VALUE' "
        "for each chooses them, too"
    )
    assert unknown_values(store, asked("number!=2")) == ""
    assert unknown_values(store, asked("quality=bad")) == ""
    assert unknown_values(store, asked("quality not_known_to_be bad")) == ""


def test_the_operator_in_words_and_sql(store: CatalogStore) -> None:
    """The sentence says what is not known; the SQL is Db2's."""
    told = describe(store, asked("quality not_known_to_be bad"))
    assert "whose quality is not known to be 'bad'" in told.sentence
    assert "(quality is null or quality <> 'bad')" in told.sql.text
