"""Class groups, and every aggregate over two data sets of different classes and frame sizes.

The catalog, counted by hand; "-" is a class that the frame's data set does not have:

    frame     pixels  car  truck  bus  sky  unknown  vehicle = car + truck + bus
    city/a1      100   10     20    -   70        0       30
    city/a2      100    0      0    -  100        0        0
    street/b1    200   50      -  100    -       50      150
    street/b2    200    0      -   30    -      170       30
    clouds/c1     50    -      -    -   50        0        -
    city/u1      without a label                           -
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.errors import AlreadyExists, InvalidInput, UnknownName
from catalog.frames.frames import SourceNames, register
from catalog.lake.catalog import Catalog
from catalog.lake.layouts import JOINED, WIDE
from catalog.lake.schema import POSITION_TAGS
from catalog.limited_store import LimitedStore
from catalog.maintenance.check import check
from catalog.maintenance.export import export_parquet
from catalog.maintenance.go_back import go_back
from catalog.maintenance.snapshot_diff import diff
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags.class_groups import define_group
from catalog.tags.families import write
from catalog.tags.group_text import parse_group
from catalog.tags.model_scores import write_scores
from catalog.tags.tags import add_class_tags, add_tag, drop_tag
from catalog.values import Frame
from query.frames.select_frames import select_frames
from query.question.condition import Has, ShareRange, Without
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql
from query.sets.distribution import distribution
from query.sets.draw import Frames as FramesToDraw
from query.sets.draw import draw_set
from query.sets.methods import REST, Match, Sample, Uncertain
from query.statistics.class_statistics import class_report
from query.statistics.facets import facets
from query.statistics.histogram_report import AxisRequest
from query.statistics.histograms import histogram
from query.statistics.population import Frames
from tests.catalog.some_rows import file

NAMES = {"car": "Car", "truck": "Truck", "sky": "Sky", "bus": "Coach"}
LABELLED: dict[str, dict[str, int]] = {
    "city/a1": {"car": 10, "truck": 20, "sky": 70},
    "city/a2": {"car": 0, "truck": 0, "sky": 100},
    "street/b1": {"car": 50, "bus": 100},
    "street/b2": {"car": 0, "bus": 30},
    "clouds/c1": {"sky": 50},
}
PIXELS = {"city/a1": 100, "city/a2": 100, "street/b1": 200, "street/b2": 200, "clouds/c1": 50}


def a_frame(key: str) -> Frame:
    """A frame with its label; without one where LABELLED has none."""
    counts = LABELLED.get(key)
    size = PIXELS.get(key, 100)
    return Frame(
        key, None if counts is None else f"{key}-label", None, None, "20180807_145028", "front", 1,
        size // 10, 10, dict.fromkeys(POSITION_TAGS, 0), counts or {},
        None if counts is None else size - sum(counts.values()),
    )  # fmt: skip


def put(store: CatalogStore, *keys: str) -> None:
    """Catalog frames, each folder as a source of its own."""
    for source in dict.fromkeys(key.split("/")[0] for key in keys):
        ours = [key for key in keys if key.startswith(f"{source}/")]
        files = [file(name) for key in ours for name in (key, f"{key}-label")]
        with store.writing("rows") as connection:
            names = SourceNames("NFS", "c1", source, "/root")
            register(connection, names, files, [a_frame(key) for key in ours], 1)


def opened(location: CatalogLocation, memory_mb: int = 0) -> CatalogStore:
    """The catalog, its newest snapshot in memory where it may be."""
    store = CatalogStore(location, threads=1, snapshot_memory_mb=memory_mb, class_names=NAMES.copy)
    with store.reading() as snapshot:
        pass
    if memory_mb:
        assert store.memory.wait(300)
    with store.reading() as snapshot:
        assert snapshot.layout is (WIDE if memory_mb else JOINED)
    return store


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> CatalogLocation:
    """The catalog, with the group and another tag after it."""
    location = CatalogLocation.in_folder(tmp_path_factory.mktemp("groups"))
    store = CatalogStore(location, threads=1, class_names=NAMES.copy)
    add_class_tags(store, [*NAMES])
    put(store, *LABELLED, "city/u1")
    assert define_group(store, "vehicle", ["Car", "truck", "coach"]) == ("car", "truck", "bus")
    add_tag(store, "score", "real")
    store.close()
    return location


@pytest.fixture(scope="module", params=[0, 200], ids=["parquet", "memory"])
def store(request: pytest.FixtureRequest, location: CatalogLocation) -> Iterator[CatalogStore]:
    """The catalog, read from Parquet and from memory."""
    store = opened(location, request.param)
    yield store
    store.close()


def rows(store: Catalog, statement: str) -> list[dict[str, Any]]:
    """What a statement answers."""
    answer: list[dict[str, Any]] = run_sql(store, statement).rows.to_pylist()
    return answer


def chosen(store: Catalog, question: Question) -> list[str]:
    """The keys of the frames that a question chooses."""
    fkeys = select_frames(store, question).frames["fkey"].to_pylist()
    return [fkey.split(":")[2] for fkey in fkeys]


def test_sql(store: CatalogStore) -> None:
    """A group is a column of metaocean_view and a view, text as any tag, and joins as one."""
    view = rows(store, "select fkey, vehicle from metaocean_view where car is not null or sky > 0")
    assert {row["fkey"].split(":")[2]: row["vehicle"] for row in view} == {
        "city/a1": "30", "city/a2": "0", "street/b1": "150", "street/b2": "30", "clouds/c1": None,
    }  # fmt: skip
    of_tag = rows(store, "select fkey, value from t_vehicle order by fkey")
    assert [(row["fkey"], row["value"]) for row in of_tag] == [
        ("c1:city:city/a1", "30"), ("c1:city:city/a2", "0"),
        ("c1:street:street/b1", "150"), ("c1:street:street/b2", "30"),
    ]  # fmt: skip
    joined = (
        "select metaocean.filename, t_car.value as car from metaocean, t_vehicle, t_car where "
        "metaocean.fkey = t_vehicle.fkey and metaocean.fkey = t_car.fkey "
        "and int(t_vehicle.value) between 20 and 100 order by metaocean.fkey"
    )
    assert rows(store, joined) == [
        {"filename": "a1", "car": "10"}, {"filename": "b2", "car": "0"}
    ]  # fmt: skip
    sums = "select sum(int(vehicle)) as n, count(vehicle) as k, count(*) as all from metaocean_view"
    assert rows(store, sums) == [{"n": 210, "k": 4, "all": 12}]


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        (Question(ranges=(LabelRange(tag="vehicle", lowest=30),)),
         ["city/a1", "street/b1", "street/b2"]),
        (Question(ranges=(LabelRange(tag="VEHICLE", highest=30),)),
         ["city/a1", "city/a2", "street/b2"]),
        (Question(condition=Has(kind="has", tag="vehicle")), ["city/a1", "street/b1", "street/b2"]),
        # Nothing is known of clouds/c1: its data set has no such class.
        (Question(condition=Without(kind="without", tag="vehicle")), ["city/a2"]),
        (Question(condition=Without(kind="without", tag="bus", pixels=31)), ["street/b2"]),
        (Question(condition=ShareRange(kind="share", tag="vehicle", lowest=0.3)),
         ["city/a1", "street/b1"]),
        (Question(condition=ShareRange(kind="share", tag="vehicle", highest=0.15)),
         ["city/a2", "street/b2"]),
        (Question(where="vehicle = 30 and bus > 1"), ["street/b2"]),
        (Question(where="vehicle is null"), ["clouds/c1"]),
        (Question(order=("vehicle desc",), where="vehicle > 0"),
         ["street/b1", "city/a1", "street/b2"]),
    ],
)  # fmt: skip
def test_questions(store: CatalogStore, question: Question, keys: list[str]) -> None:
    """A group stands where a class stands; what a data set does not have is unknown, not zero."""
    assert chosen(store, question) == keys


def test_columns(store: CatalogStore) -> None:
    """A selection has the classes' columns by itself, and a group's where it is asked for."""
    plain = select_frames(store, Question())
    assert plain.classes == ("car", "truck", "sky", "bus")
    assert "vehicle" not in plain.frames.column_names
    asked = select_frames(store, Question(), columns=["vehicle"]).frames
    assert asked["vehicle"].to_pylist() == [30, 0, None, 150, 30]


def test_class_statistics(store: CatalogStore) -> None:
    """Shares are of the pixels of the frames whose data set has the class; a group comes last."""
    report = class_report(store)
    assert (report.frames, report.pixels) == (5, 650)
    figures = [
        (one.tag, one.name, one.frames, one.pixels, one.share, one.share_where_present,
         one.presence)
        for one in report.classes
    ]  # fmt: skip
    assert figures == [
        ("car", "Car", 2, 60, 60 / 600, 60 / 300, 2 / 4),
        ("truck", "Truck", 1, 20, 20 / 200, 20 / 100, 1 / 2),
        ("sky", "Sky", 3, 220, 220 / 250, 220 / 250, 3 / 3),
        ("bus", "Coach", 2, 130, 130 / 400, 130 / 400, 2 / 2),
        ("vehicle", "vehicle", 3, 210, 210 / 600, 210 / 500, 3 / 4),
    ]


def test_facets(store: CatalogStore) -> None:
    """A class has a bin of its own for frames whose data set lacks it, and a group for none."""
    question = Question(ranges=(LabelRange(tag="vehicle", lowest=1),))
    report = facets(store, Frames(question=question))
    tags = [facet.tag for facet in report.facets]
    assert tags[tags.index("bus") + 1] == "vehicle"
    assert (report.frames, report.matching) == (5, 3)
    found = {facet.tag: facet for facet in report.facets}
    assert found["vehicle"].asked
    for tag, unknown, zero in [("vehicle", 1, 1), ("bus", 3, 0), ("car", 1, 2), ("truck", 3, 1)]:
        facet = found[tag]
        assert facet.scale == "log", tag
        bins = {bin_.kind: n for bin_, n in zip(facet.bins, facet.of_all, strict=True)}
        assert (bins.get("null", 0), bins.get("zero", 0)) == (unknown, zero), tag
    # The other conditions alone count for it, so that all frames do; for bus, the range's.
    assert sum(found["vehicle"].counts) == 5
    counts = {b.kind: n for b, n in zip(found["bus"].bins, found["bus"].counts, strict=True) if n}
    assert counts["null"] == 1
    assert sum(found["bus"].counts) == 3


def test_histogram(store: CatalogStore) -> None:
    """Frames whose data set lacks a class are counted apart from those without a pixel of it."""
    for tag, unknown, zero, above in [("vehicle", 1, 1, 3), ("bus", 3, 0, 2), ("sky", 2, 0, 3)]:
        answer = histogram(store, [AxisRequest(tag=tag, edges=(1, 1000), zero=True)])
        kinds = [bin_.kind for bin_ in answer.axes[0].bins]
        counts = dict(zip(kinds, answer.counts, strict=True))
        assert answer.frames == 5
        assert (counts.get("null", 0), counts.get("zero", 0), counts.get("range", 0)) == (
            unknown, zero, above,
        ), tag  # fmt: skip


def test_sets(store: CatalogStore) -> None:
    """Strata and targets of classes and groups: unknown is a stratum beside absent and present."""
    fkeys = [f"c1:{key.split('/')[0]}:{key}" for key in LABELLED]
    at = store.snapshot()
    shares = distribution(store, fkeys, ["vehicle", "bus", "vehicle:0,100"], at)
    assert shares == {
        "vehicle": {"absent": 0.2, "present": 0.6, "none": 0.2},
        "bus": {"present": 0.4, "none": 0.6},
        "vehicle:0,100": {"0:100": 0.6, "100:": 0.2, "none": 0.2},
    }
    assert [*distribution(store, fkeys, [], at)] == ["camera", *NAMES]
    with store.reading() as snapshot:
        frames = FramesToDraw(snapshot, snapshot.relation, Question())
        targets = {"vehicle": {"present": 0.5, "none": 0.25, "absent": 0.25}}
        match = draw_set(frames, Match(method="match", frames=4, targets=targets), seed=1)
        sample = draw_set(
            frames, Sample(method="sample", frames=3, stratify=("vehicle",), allocation="equal"), 1
        )
        spread = draw_set(frames, Uncertain(method="uncertain", frames=2, tag="vehicle"), 1)
    achieved = match.report["marginals"][0]["values"]
    assert {one["value"]: one["frames"] for one in achieved} == {
        "absent": 1, "none": 1, "present": 2, REST: 0,
    }  # fmt: skip
    assert {one["stratum"]: one["available"] for one in sample.report["largest_strata"]} == {
        "present": 3, "absent": 1, "none": 1,
    }  # fmt: skip
    assert spread.report["without_score"] == 1


@pytest.mark.wide
def test_confusions(own: CatalogLocation) -> None:
    """What a validation found of a class is unknown in frames whose data set does not have it."""
    store = opened(own)
    put(store, "city/a2", "clouds/c1")
    keys = ["city/a1", "city/a2", "street/b1", "clouds/c1"]
    fkeys = [f"c1:{key.split('/')[0]}:{key}" for key in keys]
    scores = pa.table({"fkey": fkeys, "accuracy": [0.5] * 4})
    of_a1 = [
        ("truck", "car", 7), ("truck", "truck", 100), ("truck", "sky", 20), ("car", "bus", 300),
        ("sky", "car", 1000), ("sky", "sky", 4000),
    ]  # fmt: skip
    truth, predicted, pixels = zip(*of_a1, strict=True)
    cells = pa.table(
        {
            "fkey": fkeys[:1] * len(of_a1), "truth": truth, "predicted": predicted,
            "pixels": pa.array(pixels, pa.int32()),
        }
    )  # fmt: skip
    write_scores(store, "m", "aa", scores, cells)
    # Another model's class is called as the group: it is meant, and not the group.
    own = pa.table(
        {
            "fkey": fkeys[:1], "truth": ["vehicle"], "predicted": ["sky"],
            "pixels": pa.array([9], pa.int32()),
        }
    )  # fmt: skip
    write_scores(store, "merged", "bb", scores, own)
    of_merged = Question(model="merged", where="confusion(vehicle, sky) = 9")
    assert chosen(store, of_merged) == ["city/a1"]
    for where, found in {
        "confusion(truck, car) = 7": ["city/a1"],
        "confusion(truck, car) < 7": ["city/a2"],
        "confusion(truck, car) is null": ["clouds/c1", "street/b1"],
        "confusion(car, truck) = 0": ["city/a1", "city/a2", "street/b1"],
        "confusion(truck, truck) = 100": ["city/a1"],
        # A group is all of its classes, and a pixel that was taken for what it is is no confusion.
        "confusion(vehicle, sky) = 20": ["city/a1"],
        "confusion(Sky, VEHICLE) = 1000": ["city/a1"],
        "confusion(vehicle, vehicle) = 307": ["city/a1"],
        "confusion(vehicle, truck) = 0": ["city/a1", "city/a2", "street/b1"],
        "confusion(truck, vehicle) = 7": ["city/a1"],
        "confusion(vehicle, sky) = 0": ["city/a2", "street/b1"],
        "confusion(vehicle, sky) is null": ["clouds/c1"],
    }.items():
        assert chosen(store, Question(model="m", where=where)) == found, where
    store.close()


def test_limited_users(store: CatalogStore) -> None:
    """A user of a collection has the group over the rows that may be seen, and no others."""
    mine = LimitedStore(store, "metaocean.datasource = 'street'")
    assert rows(mine, "select fkey, value from t_vehicle order by 1") == [
        {"fkey": "c1:street:street/b1", "value": "150"},
        {"fkey": "c1:street:street/b2", "value": "30"},
    ]
    assert chosen(mine, Question(ranges=(LabelRange(tag="vehicle", highest=100),))) == ["street/b2"]
    assert [one.frames for one in class_report(mine).classes] == [1, 0, 0, 2, 2]
    mine.close()


@pytest.mark.wide
def test_definitions_are_checked(location: CatalogLocation) -> None:
    """What is no class, is taken, is a group or comes twice is refused, and nothing is written."""
    store = opened(location)
    before = store.snapshot()
    refused: list[tuple[str, type[Exception], str]] = [
        ("wheels = car + trcuk", UnknownName, "truck"),
        ("wheels = unknown_pixels", UnknownName, "class 'unknown_pixels'"),
        ("wheels = front + car", UnknownName, "class 'front'"),
        ("wheels = score", UnknownName, "class 'score'"),
        ("wheels = vehicle + sky", InvalidInput, "vehicle is a group itself; name its classes"),
        ("wheels = car + Car", InvalidInput, "car, car; give one class or more, each once"),
        ("vehicle = car", AlreadyExists, "tag 'vehicle' already exists"),
        ("car = truck + bus", AlreadyExists, "class 'car' already exists"),
        ("coach = truck + car", AlreadyExists, "class 'coach' already exists: its tag is bus"),
        ("score = car", AlreadyExists, "tag 'score' already exists"),
        ("camera = car", AlreadyExists, "tag 'camera' already exists"),
        ("path = car", InvalidInput, "is a column of every file already"),
        ("Wheels! = car", InvalidInput, "expected a name of at most 64 lower-case letters"),
    ]
    for text, kind, words in refused:
        with pytest.raises(kind, match=words):
            define_group(store, *parse_group(text))
    for text in ("wheels", "wheels =", "= car", "wheels = car +", "wheels = + car"):
        with pytest.raises(InvalidInput, match="expected a tag and its classes, such as"):
            parse_group(text)
    # A later class list has a class of the group's name; another writer would give the tag values.
    with pytest.raises(InvalidInput, match="the catalog has a class group of that name; remove"):
        add_class_tags(store, ["lane", "vehicle"])
    with pytest.raises(InvalidInput, match="tag 'vehicle' belongs to family class_groups already"):
        write(store, "own", {"vehicle": "BIGINT"})
    with pytest.raises(InvalidInput, match="is the catalog's own"):
        write(store, "class_groups", {"more": "BIGINT"})
    assert store.snapshot() == before
    with store.reading() as snapshot:
        assert "lane" not in snapshot.tags
    store.close()


@pytest.fixture
def own(location: CatalogLocation, tmp_path: Path) -> CatalogLocation:
    """A catalog of the test's own: two frames, and the group."""
    place = CatalogLocation.in_folder(tmp_path / "own")
    store = CatalogStore(place, threads=1, class_names=NAMES.copy)
    add_class_tags(store, [*NAMES])
    put(store, "city/a1", "street/b1")
    define_group(store, "vehicle", ["car", "truck", "bus"])
    store.close()
    return place


@pytest.mark.wide
def test_memory_follows(own: CatalogLocation) -> None:
    """Rows and groups that come, go or are others are in memory as they are in the files."""
    store = opened(own, 200)

    def vehicles() -> list[tuple[str, str]]:
        with store.reading():
            pass
        assert store.memory.wait(300)
        with store.reading() as snapshot:
            assert snapshot.layout is WIDE
        found = rows(store, "select fkey, value from t_vehicle order by fkey")
        return [(row["fkey"].rpartition("/")[2], row["value"]) for row in found]

    assert vehicles() == [("a1", "30"), ("b1", "150")]
    put(store, "street/b2", "clouds/c1")
    assert vehicles() == [("a1", "30"), ("b1", "150"), ("b2", "30")]
    drop_tag(store, "vehicle")
    define_group(store, "vehicle", ["bus", "sky"])
    assert vehicles() == [("a1", "70"), ("c1", "50"), ("b1", "100"), ("b2", "30")]
    store.close()


@pytest.mark.wide
def test_a_group_lives_in_snapshots(own: CatalogLocation, tmp_path: Path) -> None:
    """A group that is removed stays in older snapshots; the check finds no fault."""
    store = opened(own)
    first = store.snapshot()
    define_group(store, "big", ["truck", "bus"])
    assert drop_tag(store, "vehicle") == 2
    gone = store.snapshot()
    with store.reading() as snapshot:
        assert {**snapshot.groups} == {"big": ("truck", "bus")}
    with pytest.raises(UnknownName, match="class 'vehicle'"):
        chosen(store, Question(ranges=(LabelRange(tag="vehicle", lowest=1),)))
    assert chosen(
        store, Question(ranges=(LabelRange(tag="vehicle", lowest=40),), snapshot=first)
    ) == ["street/b1"]
    difference = diff(store, first, gone)
    assert (difference.tags_added, difference.tags_removed) == (("big",), ("vehicle",))
    write(store, "own", {"more": "BIGINT"})
    assert check(store, {}) == []
    drop_tag(store, "big")
    with store.reading() as snapshot:
        assert snapshot.groups == {}
        assert "big" not in snapshot.schema["metaocean_view"]
    assert check(store, {}) == []
    store.close()
    go_back(own, first)
    store = opened(own)
    with store.reading() as snapshot:
        assert {**snapshot.groups} == {"vehicle": ("car", "truck", "bus")}
    assert rows(store, "select sum(int(value)) as n from t_vehicle") == [{"n": 180}]
    export_parquet(store, tmp_path / "exported")
    exported = pq.read_table(tmp_path / "exported", columns=["vehicle"])["vehicle"].to_pylist()
    assert sorted(value for value in exported if value is not None) == [30, 150]
    assert check(store, {}) == []
    store.close()
