"""Questions about a model's scores and what it took for what, against plain Python."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.errors import InvalidInput, NotFound, UnknownName
from catalog.lake.metadata.own_tables import written_since
from catalog.memory.no_memory import NoMemory
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.tags.confusion_cells import scored_models
from catalog.tags.model_scores import WrittenScores, write_scores
from query.frames.select_frames import select_frames
from query.question.condition_text import parse_tag
from query.question.describe import describe
from query.question.label_range import LabelRange
from query.question.question import Question
from query.question.why_empty import why_empty
from query.run.run_sql import run_sql
from query.sets.methods import Uncertain
from query.sets.select_set import SetRequest, select_set
from tests.query import catalogs
from tests.query.catalogs import drawn_frames

FKEYS = sorted(frame.fkey for frame in drawn_frames())
CELLS = pa.schema(
    {**dict.fromkeys(("fkey", "truth", "predicted"), pa.string()), "pixels": pa.int32()}
)
SCORED = FKEYS[:20]
"""The others are in no validation."""


def uncertainty(number: int) -> float:
    """Of the n-th scored frame."""
    return number / 20


def pixels(number: int) -> int:
    """Pedestrians of the n-th scored frame that were taken for bicycles; 0 is no cell."""
    return 1_000 * (number % 9)


def write(store: CatalogStore, model: str = "demo-train", sha256: str = "aa") -> WrittenScores:
    """Scores and cells of the scored frames, and of one that the catalog does not have."""
    names = [*SCORED, "local:gone:frame.png"]
    numbers = range(len(names))
    scores = pa.table(
        {
            "fkey": names,
            "uncertainty": [uncertainty(n) for n in numbers],
            "accuracy": [0.5 for _ in numbers],
            "miou": pa.array([None if n == 3 else 0.5 for n in numbers], pa.float64()),
        }
    )
    rows = [
        {"fkey": name, "truth": "pedestrian", "predicted": predicted, "pixels": count}
        for n, name in enumerate(names)
        for predicted, count in (("bicycle", pixels(n)), ("pedestrian", 7))
        if count
    ]
    return write_scores(store, model, sha256, scores, pa.Table.from_pylist(rows))


@pytest.fixture(scope="module")
def scored(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalog that has a model's scores; tests copy it."""
    folder = tmp_path_factory.mktemp("scored")
    store = catalogs.drawn(catalogued, folder)
    written = write(store)
    assert (written.frames, written.unknown) == (20, 1)
    assert written.cells == sum(1 + bool(pixels(n)) for n in range(20))
    store.close()
    return folder


@pytest.fixture(params=[0, 256])
def store(scored: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CatalogStore]:
    """A copy of it, read from its files or held in memory."""
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    opened = CatalogStore(
        CatalogLocation.in_folder(tmp_path),
        snapshot_memory_mb=request.param,
        class_names=catalogs.class_names,
    )
    if request.param:
        assert opened.memory.wait(60)
    yield opened
    opened.close()


def asked(store: CatalogStore, **question: Any) -> list[str]:
    """Names of the frames that answer."""
    answer = select_frames(store, Question(**{"model": "demo-train", **question}))
    names: list[str] = answer.frames["fkey"].to_pylist()
    return names


@pytest.mark.wide
def test_scores_and_cells_are_asked_by_the_models_name(store: CatalogStore) -> None:
    """Each way to name a score or a cell finds the frames that Python finds."""
    sure = [name for n, name in enumerate(SCORED) if uncertainty(n) >= 0.4]
    assert asked(store, condition=parse_tag("uncertainty>=0.4")) == sure
    assert asked(store, where="Uncertainty >= 0.4 and scene <> 'uncertainty'") == sure
    assert asked(store, order=("uncertainty desc",), limit=2) == SCORED[:17:-1]
    assert asked(store, ranges=(LabelRange.parse("uncertainty=1:"),)) == []
    taken = [name for n, name in enumerate(SCORED) if pixels(n) >= 5_000]
    assert asked(store, where="confusion(pedestrian, bicycle) >= 5000") == taken
    assert asked(store, where="confusion( Pedestrian,bicycle ) >= 5000 and uncertainty >= 0.4") == [
        name for name in taken if name in sure
    ]
    quoted = (
        """confusion("Pedestrian", 'bicycle') >= 5000 and scene <> 'confusion(x, y)' /* (' */"""
    )
    assert asked(store, where=quoted) == taken
    # A scored frame without the cell has 0 pixels of it; a frame that was not scored has none.
    none = [name for n, name in enumerate(SCORED) if not pixels(n)]
    assert asked(store, where="confusion(pedestrian, bicycle) = 0") == none
    assert asked(store, where="confusion(car, bicycle) = 0", sample=20) == SCORED
    statement = "select sum(pixels) from confusion_cells where predicted = 'bicycle'"
    assert run_sql(store, statement).rows.to_pylist()[0]["1"] == sum(map(pixels, range(20)))


@pytest.mark.wide
def test_what_is_asked_is_told_and_drawn_from(store: CatalogStore) -> None:
    """The question keeps its model, its SQL gives the same frames, and sets are drawn by it."""
    question = Question(model="demo-train", where="confusion(pedestrian, bicycle) >= 5000")
    told = describe(store, question)
    assert told.question.model == "demo-train"
    assert not told.sql.note
    rows = run_sql(store, told.sql.text).rows
    assert rows["fkey"].to_pylist() == asked(store, where=question.where)
    method = Uncertain(tag="demo_train_uncertainty", frames=2, pool=1)
    chosen, _ = select_set(store, SetRequest(question, method))
    assert len(chosen) == 2
    assert chosen.question.model == "demo-train"


@pytest.mark.wide
def test_scores_that_come_again_are_refreshed_in_memory(store: CatalogStore) -> None:
    """What was written again is answered, and memory takes in the rows alone."""
    if isinstance(store.memory, NoMemory):
        return
    held = store.memory.loaded_bytes
    assert write(store).frames == 20
    assert store.memory.wait(60)
    # A load holds nothing until it ends; a refresh goes on holding the tables.
    assert store.memory.loaded_bytes >= held > 0
    with store.inspecting() as cursor:
        assert written_since(cursor, store.snapshot() - 1) is not None
    assert asked(store, where="confusion(car, bicycle) = 0") == SCORED


def test_what_cannot_be_asked_is_named(store: CatalogStore) -> None:
    """A model without scores, a class that is none, a confusion of no model."""
    with pytest.raises(UnknownName, match=r"demo-train.*import-scores"):
        asked(store, model="demo-trian", where="uncertainty > 0")
    question = Question(model="demo-train", where="confusion(car, bicycle) > 9")
    assert why_empty(store, question).endswith("SQL says confusion(car, bicycle) > 9")
    with pytest.raises(UnknownName, match=r"pedestrain.*pedestrian"):
        asked(store, where="confusion(pedestrain, bicycle) > 0")
    with pytest.raises(InvalidInput, match="of which model"):
        asked(store, model=None, where="confusion(pedestrian, bicycle) > 0")
    with pytest.raises(UnknownName, match="unknown class 'Traffic sign / 2'"):
        asked(store, where='confusion("Traffic sign / 2", bicycle) > 0')
    assert asked(store, model=None, where="scene = 'confusion(pedestrian, bicycle)'") == []


@pytest.mark.wide
def test_a_frame_that_was_only_predicted_has_no_confusion(catalogued: Path, tmp_path: Path) -> None:
    """It is in no answer, not with 0 pixels either; a model without a validation is named."""
    store = catalogs.drawn(catalogued, tmp_path)
    predicted = pa.table({"fkey": FKEYS[10:], "uncertainty": [0.5 for _ in FKEYS[10:]]})
    write_scores(store, "demo-train", "aa", predicted, None)
    with pytest.raises(InvalidInput, match=r"no validation of model demo-train.*import-scores"):
        asked(store, where="confusion(car, bicycle) = 0")
    write(store)
    write_scores(store, "demo-train", "aa", predicted, None)
    assert len(FKEYS) > len(SCORED)
    cells = [{"fkey": one, "truth": None, "predicted": "sky", "pixels": 9} for one in FKEYS[10:]]
    found = pa.Table.from_pylist(cells, CELLS)
    for _ in range(2):
        again = write_scores(store, "demo-train", "aa", predicted, found)
    assert again.cells == len(FKEYS) - len(SCORED)
    statement = "select count(*), count(truth) from confusion_cells where predicted = 'sky'"
    assert [*run_sql(store, statement).rows.to_pylist()[0].values()] == [again.cells, 0]
    write(store)
    assert asked(store, where="confusion(car, bicycle) = 0") == SCORED
    assert asked(store, where="uncertainty is not null") == FKEYS
    store.close()


@pytest.mark.wide
def test_scores_of_a_model_are_replaced_and_dropped_as_one(
    catalogued: Path, tmp_path: Path
) -> None:
    """Other weights' scores replace all; the family's end takes cells and model; names clash."""
    store = catalogs.drawn(catalogued, tmp_path)
    write(store)
    assert write(store, sha256="bb").frames == 20
    with store.reading() as snapshot:
        assert scored_models(snapshot)["demo-train"].sha256 == "bb"
    with pytest.raises(InvalidInput, match="tags drop scores_demo_train"):
        write(store, model="demo_train")
    assert write(store, model="Demo.train").scored.prefix.startswith("demo_train_")
    assert families.drop(store, "scores_demo_train") == 20
    models = "select distinct model from confusion_cells"
    assert run_sql(store, models).rows["model"].to_pylist() == ["Demo.train"]
    with pytest.raises(UnknownName):
        asked(store, where="uncertainty > 0")
    with pytest.raises(NotFound):
        families.drop(store, "scores_demo_train")
    store.close()
