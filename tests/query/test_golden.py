"""Statements that users of Spectrum Discover wrote."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.query.catalogs import DrawnFrame, class_names, lines, listed_files, rows

REAL: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "real_statements.json").read_text()
)
STATEMENTS = [example["sql"] for example in REAL if example["kind"] == "statement"]
BODIES = [example["sql"] for example in REAL if example["kind"] == "where"]
SHARE, THREE_TAGS, FIVE_TAGS = STATEMENTS[:3]
PIXELS = 1920 * 1208


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """Read from Parquet."""
    return stored


def share_by_hand(counts: list[int]) -> str:
    """The redbook's share of a class in percent, in integers: 12 decimals, cut, zeros stripped."""
    divisor = len(counts) * PIXELS // 100
    units = sum(counts) * 10**12 // divisor
    return f"{units // 10**12}.{units % 10**12:012d}".rstrip("0").rstrip(".")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_real_statement_runs(store: CatalogStore, statement: str) -> None:
    """Each statement found in public sources is answered."""
    assert run_sql(store, statement, timeout_s=300).rows.num_columns > 0


@pytest.mark.parametrize("body", BODIES)
def test_every_real_where_body_runs(store: CatalogStore, body: str) -> None:
    """Each WHERE body is answered by metaocean_view, and by a selection of frames alike."""
    answer = rows(store, f"select fkey from metaocean_view where {body}")
    selected = select_frames(store, Question(where=body))
    fkeys = {row[0] for row in answer if str(row[0]).endswith(".png") and "/camera/" in str(row[0])}
    assert set(selected.frames["fkey"].to_pylist()) == fkeys


def test_share_is_exact_integer_arithmetic(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """The redbook's first statement prints 12 truncated decimals without trailing zeros."""
    expected = share_by_hand([frame.tags["rd_normal_street"] for frame in frames])
    assert lines(run_sql(store, SHARE).rows) == [f"0,{expected}\n"]


@pytest.mark.wide
def test_share_of_every_class(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """The same statement agrees with integer arithmetic for each of the 38 classes."""
    for tag in class_names():
        statement = SHARE.replace("rd_normal_street", tag)
        expected = share_by_hand([frame.tags[tag] for frame in frames])
        assert lines(run_sql(store, statement).rows) == [f"0,{expected}\n"], tag


def test_three_tag_join_prints_as_the_redbook_does(
    store: CatalogStore, frames: list[DrawnFrame]
) -> None:
    """Row number, then quoted text: 0,"IBM COS","a2d2","camera_lidar_semantic/..."."""
    expected = sorted(
        frame.key
        for frame in frames
        if frame.tags["front"] and frame.tags["center"] and frame.tags["bicycle"] > 0
    )
    printed = lines(run_sql(store, THREE_TAGS).rows)
    assert expected
    assert sorted(line.split(",", 1)[1] for line in printed) == [
        f'"IBM COS","a2d2","{key}"\n' for key in expected
    ]
    assert [line.split(",")[0] for line in printed] == [str(i) for i in range(len(expected))]


def test_five_tag_join_finds_the_one_frame(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """The redbook's six-table comma join with three ranges."""
    bounds = {"car": (10_000, 20_000), "bicycle": (3_000, 5_000), "pedestrian": (5_000, 6_000)}
    (expected,) = [
        frame.key
        for frame in frames
        if frame.tags["front"]
        and frame.tags["center"]
        and all(low <= frame.tags[tag] <= high for tag, (low, high) in bounds.items())
    ]
    assert lines(run_sql(store, FIVE_TAGS).rows) == [f'0,"IBM COS","a2d2","{expected}"\n']


def test_left_join_keeps_files_without_the_tag(
    store: CatalogStore, frames: list[DrawnFrame]
) -> None:
    """The tape scripts' LEFT JOIN gives every file, and no value where there is no tag."""
    (statement,) = [text for text in STATEMENTS if "LEFT JOIN" in text]
    values = {str(row[1]): row[5] for row in rows(store, statement)}
    cars = {frame.key: str(frame.tags["car"]) for frame in frames}
    assert values == {key: cars.get(key) for key in listed_files() if "front" in key}


def test_share_of_real_a2d2_frames(real_store: CatalogStore, a2d2_root: Path) -> None:
    """Over real label images the share agrees with the counts made for them by hand."""
    labels = json.loads((a2d2_root / "counts.json").read_text())["labels"]
    counts = [label["by_list_entry"].get("RD normal street", 0) for label in labels.values()]
    ((share,),) = rows(real_store, SHARE)
    assert isinstance(share, Decimal)
    assert share == Decimal(share_by_hand(counts))
