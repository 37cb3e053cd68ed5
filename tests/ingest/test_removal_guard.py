"""A disk that is away: a scan removes nothing, and what people typed returns with the files."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import select

from catalog.errors import InvalidInput, RemovalRefused
from catalog.maintenance.check import check
from catalog.records.scans import last_scan, recorded_problems
from catalog.records.tables import Scan, Source
from catalog.tags import families, tags
from catalog.values import make_fkey
from ingest.scan.array_scan import write_units
from ingest.scan.removal_guard import RemovalGuard
from ingest.scan.scan import ScanOptions
from ingest.scan.thread_engine import ThreadEngine
from tests.ingest.scene_folders import SCENE, SKY, Home, add_frame, frame_key, make_tree, put

FRAMES = 15
WIDE = "SELECT * EXCLUDE (atime, ctime, inode) FROM metaocean_view ORDER BY fkey"


@pytest.fixture
def source(home: Home, tmp_path: Path) -> Source:
    """A source of 15 frames that has been scanned, with an imported tag on each image."""
    source = home.add(make_tree(tmp_path / "tree", FRAMES))
    home.scan(source)
    fkeys = [make_fkey("host1", "a2d2", frame_key("camera", n + 1)) for n in range(FRAMES)]
    rows = pa.table({"fkey": fkeys, "weather": ["rain"] * FRAMES, "wet": [0.1] * FRAMES})
    families.write(home.store, "weather", {"weather": "VARCHAR", "wet": "DOUBLE"}, rows)
    tags.set_kind(home.store, "weather", "Restricted", ["rain", "sun"])
    return source


def scene_away(source: Source) -> Path:
    """The scene's folder, moved out of the source's."""
    root = Path(source.uri)
    return (root / SCENE).rename(root.parent / "away")


@pytest.mark.wide
def test_nothing_is_removed_where_too_much_is_gone(home: Home, source: Source) -> None:
    """The scan fails, says how to allow it, and has catalogued what is new."""
    before = home.rows(WIDE)
    away = scene_away(source)
    put(Path(source.uri), "new.txt", b"new")
    with pytest.raises(RemovalRefused, match=r"30 of its 31 catalogued files.*--max-removed 1"):
        home.scan(source)
    with home.records.session() as session:
        scan = session.scalars(select(Scan).order_by(Scan.id.desc())).first()
        assert scan is not None
        assert (scan.state, scan.counts["removed"], scan.counts["added"]) == ("failed", 0, 1)
    assert [row for row in home.rows(WIDE) if "new.txt" not in row] == before
    away.rename(Path(source.uri) / SCENE)
    again = home.scan(source).counts
    assert (again.removed, again.changed, again.added, again.frames) == (0, 0, 0, 0)


@pytest.mark.wide
def test_peoples_tags_return_with_the_files(home: Home, source: Source) -> None:
    """Of every type; a file removed on purpose has none while it is away."""
    before = home.rows(WIDE)
    away = scene_away(source)
    counts = home.scan(source, max_removed=1.0).counts
    assert counts.removed == 2 * FRAMES
    assert home.rows("SELECT count(*) FROM t_weather") == [(0,)]
    assert check(home.store, {}) == []
    away.rename(Path(source.uri) / SCENE)
    assert home.scan(source).counts.added == 2 * FRAMES
    assert home.rows(WIDE) == before
    assert check(home.store, {}) == []


@pytest.mark.wide
def test_a_value_that_its_tag_no_longer_takes_stays_kept(home: Home, source: Source) -> None:
    """It stops no scan, and returns when the tag takes it again; a dropped tag's do not."""
    away = scene_away(source)
    home.scan(source, max_removed=1.0)
    tags.set_kind(home.store, "weather", "Restricted", ["sun"])
    shutil.copytree(away, Path(source.uri) / SCENE)
    home.scan(source)
    assert home.rows("SELECT count(*) FROM t_weather") == [(0,)]
    assert home.rows("SELECT count(*) FROM t_wet WHERE value = '0.1'") == [(FRAMES,)]
    shutil.rmtree(Path(source.uri) / SCENE)
    home.scan(source, max_removed=1.0)
    tags.set_kind(home.store, "weather", "Open")
    tags.drop_tag(home.store, "wet")
    shutil.copytree(away, Path(source.uri) / SCENE)
    home.scan(source)
    assert home.rows("SELECT count(*) FROM t_weather WHERE value = 'rain'") == [(FRAMES,)]
    families.write(home.store, "weather", {"wet": "DOUBLE"})
    assert home.rows("SELECT count(*) FROM t_wet WHERE value NOTNULL") == [(0,)]


@pytest.mark.wide
def test_a_frame_that_lost_its_label_keeps_its_counts_until_then(
    home: Home, source: Source
) -> None:
    """Only the labels' folder is away, and images change meanwhile: no count is lost."""
    home.scan(source)
    add_frame(Path(source.uri), FRAMES + 1, [SKY])
    for number in range(FRAMES + 2, FRAMES + 10):
        add_frame(Path(source.uri), number, [SKY])
    home.scan(source)
    counts = home.rows("SELECT fkey, value FROM t_car ORDER BY fkey")
    root = Path(source.uri)
    (root / SCENE / "label").rename(root.parent / "labels")
    image = root / frame_key("camera", 1)
    image.write_bytes(image.read_bytes() + b"longer")
    with pytest.raises(RemovalRefused):
        home.scan(source)
    assert home.rows("SELECT fkey, value FROM t_car ORDER BY fkey") == counts
    assert recorded_problems(home.records, source_id=source.id) == []


@pytest.mark.wide
def test_what_is_wrong_with_a_file_that_is_away_stays_known(home: Home, source: Source) -> None:
    """It is unchanged when it returns, and so is not read again."""
    put(Path(source.uri), frame_key("label", 1), b"no PNG at all")
    home.scan(source)
    wrong = recorded_problems(home.records, source_id=source.id)
    assert wrong
    away = scene_away(source)
    with pytest.raises(RemovalRefused):
        home.scan(source)
    assert recorded_problems(home.records, source_id=source.id) == wrong
    away.rename(Path(source.uri) / SCENE)
    home.scan(source)
    assert recorded_problems(home.records, source_id=source.id) == wrong


def test_units_are_not_written_where_too_much_is_gone(
    home: Home, source: Source, tmp_path: Path
) -> None:
    """No folder of units is left, and the scan has failed."""
    scene_away(source)
    with pytest.raises(RemovalRefused):
        write_units(
            home.store, home.records, source, ScanOptions(), tmp_path / "units", unit_frames=10
        )
    assert not (tmp_path / "units").exists()
    scan = last_scan(home.records, source.id)
    assert scan is not None
    assert scan.state == "failed"


@pytest.mark.parametrize(
    ("share", "catalogued", "gone", "refused"),
    [
        (0.05, 20, 19, False),
        (0.05, 20, 20, True),
        (0.05, 400, 20, False),
        (0.05, 400, 21, True),
        (0.0, 400, 19, False),
        (0.0, 400, 20, True),
        (1.0, 20, 20, False),
    ],
)
def test_how_many_may_go(share: float, catalogued: int, gone: int, refused: bool) -> None:
    """More than the share, and at least 20."""
    guard = RemovalGuard(share, lambda: catalogued, "a2d2")
    for _ in range(gone):
        guard.count("key")
    assert guard.refuses is refused


def test_a_share_is_a_share() -> None:
    """5 is taken for no per cents."""
    with pytest.raises(InvalidInput, match="expected a share from 0 to 1"):
        RemovalGuard(5.0)


@pytest.mark.wide
def test_engine_is_told(home: Home, source: Source) -> None:
    """Portions that a removal holds back are counted in the end, frame by frame."""
    root = Path(source.uri)
    for number in range(1, 11):
        (root / frame_key("camera", number)).unlink()
    counts = home.scan(source, engine=ThreadEngine(2)).counts
    assert (counts.removed, counts.orphans) == (10, 10)
    assert home.rows("SELECT count(*) FROM t_car") == [(FRAMES - 10,)]
