"""A question's sentence and its SQL, to the letter."""

from typing import Any

import pytest

from catalog.errors import InvalidInput, NotFound, SqlError, UnknownName
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.describe import describe
from query.question.question import Question
from query.run.run_sql import run_sql


def has(tag: str, **more: Any) -> dict[str, Any]:
    return {"kind": "has", "tag": tag, **more}


def without(tag: str, **more: Any) -> dict[str, Any]:
    return {"kind": "without", "tag": tag, **more}


def tag(name: str, op: str, *values: Any) -> dict[str, Any]:
    value = values[0] if len(values) == 1 else values
    return {"kind": "tag", "tag": name, "op": op} | ({"value": value} if values else {})


CAR = {"tag": "car", "lowest": 10_000, "highest": 20_000}
SCENE = {"kind": "scene", "names": ["20260616_094856"]}
SENTENCES = [
    ({}, "all frames"),
    ({"cameras": ["front_center"]}, "front-center frames"),
    ({"cameras": ["front_center", "side_left"]}, "front-center or side-left frames"),
    ({"ranges": [CAR]}, "frames with 10,000 to 20,000 car pixels"),
    ({"ranges": [{"tag": "car", "lowest": 1}]}, "frames with at least one car pixel"),
    ({"ranges": [{"tag": "Sky", "highest": 2}]}, "frames with at most 2 sky pixels"),
    ({"ranges": [{"tag": "sky", "lowest": 0, "highest": 0}]}, "frames with 0 sky pixels"),
    ({"ranges": [{"tag": "front", "lowest": 1, "highest": 1}]}, "frames whose front is 1"),
    ({"ranges": [{"tag": "front", "lowest": 1}]}, "frames whose front is at least 1"),
    ({"condition": has("bicycle")}, "frames with at least one bicycle pixel"),
    ({"condition": has("RD normal street", pixels=500_000)},
     "frames with at least 500,000 RD normal street pixels"),
    ({"condition": without("rain_dirt")}, "frames without rain dirt"),
    ({"condition": without("obstacles_trash", pixels=20)},
     "frames with fewer than 20 obstacles / trash pixels"),
    ({"condition": {"kind": "share", "tag": "car", "lowest": 0.01, "highest": 0.205}},
     "frames with car on 1% to 20.5% of the pixels"),
    ({"condition": {"kind": "share", "tag": "car", "highest": 0.2}},
     "frames with car on at most 20% of the pixels"),
    ({"scenes": ["20260616_094856"]}, "frames in scene 20260616_094856"),
    ({"condition": {"kind": "time", "start": "2026-03"}}, "frames recorded from 2026-03"),
    ({"condition": {"kind": "time", "start": "2026-03", "end": "2026-05-01"}},
     "frames recorded from 2026-03 up to and including 2026-05-01"),
    ({"condition": {"kind": "time", "start": "2026", "end": "2026"}}, "frames recorded in 2026"),
    ({"condition": tag("frame_number", ">=", 1200)}, "frames whose frame_number is at least 1,200"),
    ({"condition": tag("frame_number", "between", 1, 2.5)},
     "frames whose frame_number is 1 to 2.5"),
    ({"condition": tag("frame_number", "in", 1, 2, 3)}, "frames whose frame_number is 1, 2 or 3"),
    ({"condition": tag("scene", "starts_with", "2026")}, "frames whose scene starts with '2026'"),
    ({"condition": tag("lidar_file", "is_null")}, "frames whose lidar_file is unknown"),
    ({"where": "car >\n 10"}, "frames for which SQL says car > 10"),
    ({"condition": {"kind": "any", "of": [has("bicycle"), SCENE]}},
     "frames either with at least one bicycle pixel or in scene 20260616_094856"),
    ({"condition": {"kind": "none", "of": [has("bicycle"), SCENE]}},
     "frames but not those with at least one bicycle pixel or in scene 20260616_094856"),
    ({"condition": {"kind": "any", "of": [
        SCENE, {"kind": "all", "of": [has("car"), {"kind": "none", "of": [has("bicycle")]}]}]}},
     ("frames either in scene 20260616_094856 or (with at least one car pixel and not (with at "
      "least one bicycle pixel))")),
    ({"order": ["pedestrian desc"]}, "all frames, those with the most pedestrian pixels first"),
    ({"order": ["scene", "frame_number desc"]},
     "all frames, those with the first scene, then the highest frame_number first"),
    ({"order": ["mtime"]}, "all frames, those with the earliest mtime first"),
    ({"limit": 5}, "all frames, the first 5 by name"),
    ({"limit": 1, "order": ["car"]}, "all frames, the one with the fewest car pixels"),
    ({"sample": 1000, "seed": 3}, "all frames, 1,000 of them drawn at random with seed 3"),
    ({"ranges": [CAR], "cameras": ["front_center"], "scenes": ["20260616_094856"],
      "condition": {"kind": "all", "of": [has("bicycle"), without("rain_dirt")]},
      "order": ["pedestrian desc"], "limit": 100},
     ("front-center frames with 10,000 to 20,000 car pixels and at least one bicycle pixel, in "
      "scene 20260616_094856, without rain dirt, the 100 with the most pedestrian pixels first")),
]  # fmt: skip


@pytest.mark.parametrize(("question", "sentence"), SENTENCES)
def test_sentences(store: CatalogStore, question: dict[str, Any], sentence: str) -> None:
    """Cameras, titles of classes, numbers with units, what comes first."""
    snapshot = store.snapshot()
    told = describe(store, Question.model_validate(question))
    assert told.sentence == f"{sentence}, as of snapshot {snapshot}"
    assert (told.snapshot, told.question.snapshot) == (snapshot, snapshot)


def test_the_sql_is_what_a_person_would_write(store: CatalogStore) -> None:
    """One line per condition, names as metaocean_view has them."""
    question = Question.model_validate({
        "ranges": [CAR], "cameras": ["front_center"], "where": "int(car) * 2 > 30000 -- much",
        "condition": {"kind": "all", "of": [
            has("bicycle"), without("rain_dirt"), tag("group", "is_null"),
            {"kind": "any", "of": [SCENE, {"kind": "share", "tag": "sky", "lowest": 0.5}]},
            {"kind": "none", "of": [{"kind": "time", "start": "2026-03", "end": "2026-04"}]},
            tag("filename", "contains", "50%"), tag("camera", "!=", "it's"),
            {"kind": "scene", "names": ["20260616_094856", "20260311_130314"]}]},
        "order": ["pedestrian desc", "scene"], "limit": 100,
    })  # fmt: skip
    told = describe(store, question)
    assert (
        told.sql.text
        == """\
select platform, datasource, filename, fkey
from metaocean_view
where label_file is not null
  and car between 10000 and 20000
  and camera = 'front_center'
  and bicycle >= 1
  and rain_dirt < 1
  and "group" is null
  and (scene = '20260616_094856' or int(sky) >= 0.5 * int(image_width) * int(image_height))
  and not (scene >= '20260301_000000' and scene <= '20260430_235959')
  and filename like '%50!%%' escape '!'
  and camera <> 'it''s'
  and scene in ('20260616_094856', '20260311_130314')
  and (int(car) * 2 > 30000 -- much
)
order by int(pedestrian) desc nulls last, scene, fkey
fetch first 100 rows only"""
    )
    assert told.sql.note == ""


def test_what_sql_cannot_say_is_said(store: CatalogStore) -> None:
    """A sample, and a body or an order that names what only selections have."""
    told = describe(store, Question(sample=7, seed=2, limit=3, order=("car",)))
    assert told.sql.note == (
        "Of these frames 7 are drawn at random with seed 2, and the first 3 of those taken; "
        "SQL cannot say that."
    )
    assert told.sql.text.endswith("order by int(car), fkey")
    chosen = select_frames(store, Question(sample=7, seed=2))
    everything = run_sql(store, told.sql.text).rows["fkey"].to_pylist()
    assert set(chosen.frames["fkey"].to_pylist()) < set(everything)
    for question in (Question(where="image_size > 10"), Question(order=("fkey_hash",))):
        told = describe(store, question)
        assert told.sql.note.startswith("metaocean_view cannot be asked this: ")
        assert len(select_frames(store, question)) == 24


def test_the_questions_snapshot(store: CatalogStore) -> None:
    """It is asked by itself; another one beside it is refused; the answer names it."""
    number = store.snapshot()
    for question, at in ((Question(snapshot=number), None), (Question(), number),
                         (Question(snapshot=number), number)):  # fmt: skip
        selection = select_frames(store, question, at=at)
        assert (selection.snapshot, selection.question.snapshot) == (number, number)
    for ask in (select_frames, describe):
        with pytest.raises(InvalidInput, match=f"snapshot 1: the question is asked of .*{number}"):
            ask(store, Question(snapshot=number), at=1)
        with pytest.raises(NotFound):
            ask(store, Question(snapshot=number + 1))


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        ({"condition": has("carr")}, UnknownName, "unknown class 'carr': did you mean car"),
        ({"condition": has("front")}, UnknownName, "unknown class 'front'"),
        ({"condition": {"kind": "share", "tag": "scene", "lowest": 0.1}}, InvalidInput, "is text"),
        ({"condition": {"kind": "camera", "names": ["front_centre"]}}, UnknownName, "front_center"),
        ({"condition": {"kind": "none", "of": [{"kind": "scene", "names": ["x"]}]}}, UnknownName,
         "unknown scene 'x'"),
        ({"condition": tag("fkey_hash", ">", 1)}, UnknownName, "unknown tag 'fkey_hash'"),
        ({"order": ["carr"]}, UnknownName, "did you mean car"),
        ({"order": ["car up"]}, InvalidInput, "'desc' for falling"),
        ({"where": "carr > 1"}, SqlError, 'The nearest is "CAR"'),
    ],
)  # fmt: skip
def test_describing_checks_as_asking_does(
    store: CatalogStore, question: dict[str, Any], error: type[Exception], message: str
) -> None:
    """The same errors, without a frame being read."""
    for ask in (describe, select_frames):
        with pytest.raises(error, match=message):
            ask(store, Question.model_validate(question))
