"""framesift compact and framesift catalog ...: as users call them."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catalog.maintenance.last_backup import last_backup
from tests.api.servers import framesift, several
from tests.pipeline.homes import FRAMES, open_home

pytestmark = pytest.mark.wide


def test_log_and_diff(home: Path, tmp_path: Path) -> None:
    """Who did what, and what lies between two snapshots, for people and programs."""
    with open_home(home).catalog.reading() as cursor:
        (fkey,) = cursor.execute("SELECT min(fkey) FROM t_car").fetchone() or ("",)
    table = tmp_path / "tags.csv"
    table.write_text(f"fkey,weather\n{fkey},rain\n")
    imported = ["tags", "import", str(table), "--family", "weather", "--key", "fkey"]
    before = open_home(home).catalog.snapshot()
    done, told, listed = several(
        home, imported, ["catalog", "log"], ["catalog", "log", "--json", "--limit", "2"]
    )
    assert done[0] == told[0] == 0
    newest, older = json.loads(listed[1])
    after = newest["snapshot"]
    assert newest["changed"] == ["tags_weather"]
    assert (newest["files"], newest["frames"]) == (older["files"], FRAMES)
    assert older["snapshot"] == before
    assert newest["time"].endswith("Z")
    for word in ("snapshot", "author", "reason", "tags_weather", newest["reason"]):
        assert word in told[1]
    numbers = [str(before), str(after)]
    told, counted, nothing = several(
        home,
        ["catalog", "diff", *numbers, "--rows", "5"],
        ["catalog", "diff", *numbers, "--rows", "5", "--json"],
        ["catalog", "diff", str(after), str(after), "--json"],
    )
    counts = json.loads(counted[1])
    assert counts["tags_added"] == ["weather"]
    assert counts["tags"] == {"weather": {"set": 1, "cleared": 0, "changed": 0}}
    assert counts["changes"] == [{"fkey": fkey, "tag": "weather", "before": None, "after": "rain"}]
    assert (counts["files_added"], counts["frames_changed"]) == (0, 1)
    assert "new tags: weather" in told[1]
    assert "rain" in told[1]
    assert json.loads(nothing[1])["tags"] == {}


def test_check_and_repair(home: Path) -> None:
    """0 when nothing is wrong, 1 when something is, 0 when it has been put right."""
    sound = framesift(home, "catalog", "check")
    assert (sound.returncode, sound.stdout) == (0, "nothing is wrong\n")
    workspace = open_home(home)
    with workspace.whole_catalog.writing("broken by a test") as connection:
        connection.execute("DROP VIEW lake.bluadmin.t_car")
    workspace.close()
    check = ["catalog", "check"]
    told, listed, repaired, again = several(
        home, check, [*check, "--json"], [*check, "--repair"], [*check, "--json"]
    )
    assert (told[0], told[2]) == (1, "")
    assert told[1].startswith("view: 1 views missing, wrong or of no tag: t_car: framesift catalog")
    assert (listed[0], [one["kind"] for one in json.loads(listed[1])]) == (1, ["view"])
    assert (repaired[0], repaired[1].rstrip().rpartition(": ")[2]) == (0, "repaired")
    assert (again[0], json.loads(again[1])) == (0, [])


def test_compact(home: Path) -> None:
    """Nothing that was in use within the hour goes, unless it is told to go now."""
    all_kept, gone, wrong = several(
        home,
        ["compact", "--keep-days", "0"],
        ["compact", "--keep-days", "0", "--now", "--json"],
        ["compact", "--keep-days", "-1"],
    )
    assert all_kept[1].startswith("0 snapshots expired, ")
    done = json.loads(gone[1])
    assert done["expired"]
    assert done["expired"] == sorted(done["expired"])
    assert wrong[0] == 2
    assert framesift(home, "select").stdout.count(".png") == FRAMES


def test_backup_and_restore(home: Path, tmp_path: Path) -> None:
    """A home restored elsewhere answers as the first; nothing is overwritten."""
    target, new = tmp_path / "b.tar", tmp_path / "new"
    question = ["select", "--range", "car=1:", "--json"]
    backup, again, refused = several(
        home,
        ["catalog", "backup", str(target), "--json"],
        ["catalog", "backup", str(target)],
        question,
    )
    snapshot = json.loads(backup[1])["snapshot"]
    # Of the one that was made, not of the one that was refused.
    recorded = json.loads((home / "last-backup.json").read_text())
    assert (recorded["snapshot"], recorded["target"]) == (snapshot, str(target))
    made = last_backup(home)
    assert made is not None
    assert f"{made.isoformat()}Z" == json.loads(backup[1])["made"]
    assert (again[0], again[2].count("\n")) == (1, 1)
    assert "already exists" in again[2]
    restored, twice, answered, sources, nothing = several(
        new,
        ["catalog", "restore", str(target)],
        ["catalog", "restore", str(target)],
        question,
        ["source", "list", "--json"],
        ["catalog", "restore", str(tmp_path / "nothing")],
    )
    assert restored[0] == 0, restored
    assert last_backup(new) is None
    assert f"snapshot {snapshot}, made " in restored[1]
    assert (twice[0], twice[2].count("\n")) == (1, 1)
    assert answered[1] == refused[1]
    assert [source["name"] for source in json.loads(sources[1])] == ["a2d2"]
    assert "no such file or folder" in nothing[2]
    team = framesift(
        tmp_path / "third", "catalog", "restore", target,
        variables={"FRAMESIFT_CATALOG_DATA": str(tmp_path / "elsewhere")},
    )  # fmt: skip
    assert team.returncode == 1
    assert "framesift catalog copy" in team.stderr
    assert not (tmp_path / "third").exists()


def test_export(home: Path, tmp_path: Path) -> None:
    """The wide table as Parquet and as Iceberg."""
    plain, told, wrong = several(
        home,
        ["catalog", "export", str(tmp_path / "p"), "--json"],
        ["catalog", "export", str(tmp_path / "i"), "--format", "iceberg"],
        ["catalog", "export", str(tmp_path / "p")],
    )
    done = json.loads(plain[1])
    table = pq.read_table(tmp_path / "p")
    assert (table.num_rows, len(table.column_names)) == (done["rows"], done["columns"])
    assert sum(scene is not None for scene in table["scene"].to_pylist()) == FRAMES
    assert f"{done['rows']:,} rows" in told[1]
    assert told[1].rstrip().endswith(".metadata.json")
    assert Path(told[1].split("; open ")[1].strip()).is_file()
    assert (wrong[0], wrong[2].count("\n")) == (1, 1)
