"""framesift tags ...: as users call them."""

import json
from pathlib import Path

import pytest

from tests.api.servers import framesift, several
from tests.pipeline.homes import FRAMES, SAMPLE

IMAGES = sorted(path.name for path in SAMPLE.rglob("*_camera_*.png"))

OWN = """
from catalog.errors import BadFile
from ingest.extractors.base import Extractor
class Mine(Extractor):
    family = "mine"
    columns = {"parity": "INTEGER"}
    def extract(self, source, frame):
        if frame.number % 2:
            raise BadFile("odd numbers are not liked")
        return {"parity": 0}
"""


@pytest.mark.wide
def test_extract(home: Path, tmp_path: Path) -> None:
    """Built-in and own extractors run, a second run reads nothing, tags are asked for at once."""
    own = tmp_path / "own.py"
    own.write_text(OWN)
    first, second, status_run, bad, tags = several(
        home,
        ["tags", "extract", "a2d2", "image", "lidar", "--extractor", f"{own}:Mine", "--json"],
        ["tags", "extract", "a2d2", "image"],
        ["select", "--where", "image_brightness >= 0.5 and parity = 0", "--json"],
        ["tags", "extract", "a2d2", "--extractor", f"{own}:Mine", "--errors", "--json"],
        ["tags", "extract", "a2d2", "--extractor", f"{own}:Mine"],
    )
    image, lidar, mine = json.loads(first[1])
    assert (image["read"], image["tagged"], image["bad_files"]) == (FRAMES, FRAMES, 0)
    assert (lidar["read"], lidar["without_file"]) == (0, FRAMES)
    odd = sum(int(name[-13:-4]) % 2 for name in IMAGES)
    assert (mine["bad_files"], len(mine["problems"])) == (odd, odd)
    assert second[1].startswith("tag family image of a2d2: 0 frames read")
    assert 0 < len(json.loads(status_run[1])["frames"]) <= FRAMES - odd
    assert json.loads(bad[1])[0]["problems"] == mine["problems"]
    assert "odd numbers are not liked" in tags[1]
    assert {status for status, _, _ in (first, second, status_run, bad, tags)} == {0}


@pytest.mark.wide
def test_import_families_and_drop(home: Path, tmp_path: Path) -> None:
    """Rows land and are listed, the others are counted, shown and written; a family goes again.

    Writing them leaves other files beside them as they are.
    """
    file, rejected = tmp_path / "tags.csv", tmp_path / "rejected.csv"
    lines = ["filename,weather", f"{IMAGES[0]},rain\r", "gone.png,sun", *["gone.png,fog"] * 12]
    file.write_text("\r\n".join(lines))
    own = tmp_path / "rejected.csv.part"
    own.write_text("the user's own")
    call = ["tags", "import", str(file), "--family", "weather"]
    told, as_json, listed, families, value, _, removed, dropped, again = several(
        home,
        [*call, "--rejected", str(rejected)],
        [*call, "--json"],
        ["tags", "list", "--json"],
        ["tags", "families", "--json"],
        ["sql", "select value from t_weather"],
        ["tags", "add", "mood"],
        ["tags", "remove", "mood"],
        ["tags", "drop", "weather"],
        ["tags", "families", "--json"],
    )
    assert told[1].startswith("imported 1 of 14 rows into tag family weather: 1 tags; 13 rows name")
    assert "line 3: gone.png: names no file of the catalog" in told[1]
    assert "and 3 more: --rejected FILE" in told[1]
    assert len(rejected.read_text().splitlines()) == 14
    assert own.read_text() == "the user's own"
    answer = json.loads(as_json[1])
    assert (answer["imported"], answer["unmatched"], len(answer["problems"])) == (1, 13, 13)
    assert {
        "tag": "weather", "family": "tags_weather", "type": "varchar",
        "kind": "Characteristics", "values": [], "title": "", "classes": [],
    } in json.loads(listed[1])  # fmt: skip
    assert json.loads(families[1]) == [
        {"name": "weather", "columns": {"weather": "VARCHAR"}, "rows": 1}
    ]
    assert "rain" in value[1]
    assert removed[1] == "removed tag mood: 0 files had a value\n"
    assert dropped[1] == "dropped tag family weather: 1 rows\n"
    assert json.loads(again[1]) == []


@pytest.mark.wide
def test_values(home: Path, tmp_path: Path) -> None:
    """The most frequent first, on a home and on a server; what is left out is counted."""
    file = tmp_path / "tags.csv"
    lines = [f"{name},{'rain' if at % 3 else 'sun'}" for at, name in enumerate(IMAGES[:7])]
    file.write_text("\n".join(["filename,u3-weather", *lines, f"{IMAGES[7]},fog"]))
    _, values, cut, missing = several(
        home,
        ["tags", "import", str(file), "--family", "u3"],
        ["tags", "values", "u3-weather", "--json"],
        ["tags", "values", "u3-weather", "--limit", "1"],
        ["tags", "values", "u3-wether"],
    )
    assert json.loads(values[1]) == {
        "values": [
            {"value": "rain", "files": 4},
            {"value": "sun", "files": 3},
            {"value": "fog", "files": 1},
        ],
        "distinct": 3,
    }
    assert "rain" in cut[1]
    assert "and 2 more values: --limit" in cut[1]
    assert missing[2].startswith("error: no tag named 'u3-wether'")


@pytest.mark.wide
def test_add_and_set(home: Path, tmp_path: Path) -> None:
    """A tag with its type and kind; a value outside it is refused, and nothing is written."""
    file = tmp_path / "tags.csv"
    file.write_text(f"filename,u2-weather\n{IMAGES[0]},rain\n{IMAGES[1]},snow\n")
    call = ["tags", "import", str(file), "--family", "own"]
    command = ["tags", "set", "u2-weather", "--kind", "restricted", "--values", "rain,sun"]
    added, refused, nothing, wider, imported, narrower, as_json, listed, value = several(
        home,
        ["tags", "add", "u2-weather", "--kind", "Restricted", "--values", 'rain,sun,"a, b"'],
        call,
        ["tags", "families", "--json"],
        ["tags", "set", "u2-weather", "--kind", "Open"],
        call,
        command,
        [*command, "--values", "snow", "--json"],
        ["tags", "list", "--json"],
        ["catalog", "check", "--json"],
    )
    assert added[1] == "added tag u2-weather to family own: text, Restricted (rain, sun, a, b)\n"
    assert (refused[0], refused[2].count("\n")) == (1, 1)
    assert "value 'snow' is none of its values rain, sun, a, b" in refused[2]
    assert json.loads(nothing[1])[0]["rows"] == 0
    assert wider[1] == "tag u2-weather, Open\n"
    assert imported[1].startswith("imported 2 of 2 rows")
    assert "value 'snow' is none of its values rain, sun" in narrower[2]
    expected = {"tag": "u2-weather", "kind": "Restricted", "values": ["rain", "sun", "snow"]}
    assert json.loads(as_json[1]) == expected
    more = {"family": "tags_own", "type": "varchar", "title": "", "classes": []}
    assert {**expected, **more} in json.loads(listed[1])
    assert json.loads(value[1]) == []


@pytest.mark.wide
def test_import_map(home: Path, tmp_path: Path) -> None:
    """Positions from a table, bridges from a map: near_bridge can be asked for as a range."""
    file, features = tmp_path / "places.csv", tmp_path / "bridges.geojson"
    file.write_text(
        "filename,latitude_deg,longitude_deg\n"
        f"{IMAGES[0]},48.0,11.0\n{IMAGES[1]},48.0,11.001\n{IMAGES[2]},49.0,11.0\n"
    )
    features.write_text('{"type": "Point", "coordinates": [11.0, 48.0]}')
    _, joined, selection = several(
        home,
        ["tags", "import", str(file), "--family", "place"],
        ["tags", "import-map", str(features), "--family", "bridge", "--within", "100"],
        ["select", "--range", "near_bridge=1:1", "--json"],
    )
    assert joined[1] == (
        "2 of 3 frames with a position lie within 100 m of one of 1 features: "
        "tags near_bridge, bridge_distance_m\n"
    )
    assert len(json.loads(selection[1])["frames"]) == 2


@pytest.mark.wide
def test_errors_are_one_line(home: Path, tmp_path: Path) -> None:
    """Exit code 1, nothing on stdout, one line that names what was given."""
    (tmp_path / "tags.csv").write_text("filename,car\nx,1\n")
    features = tmp_path / "bridges.geojson"
    features.write_text('{"type": "Point", "coordinates": [11.0, 48.0]}')
    map_call = ["tags", "import-map", str(features), "--family", "b"]
    commands = {
        "did you mean image": ["tags", "extract", "a2d2", "imag"],
        "no extractor given": ["tags", "extract", "a2d2"],
        "no source named": ["tags", "extract", "nowhere", "image"],
        "FILE.py:CLASS": ["tags", "extract", "a2d2", "--extractor", "image"],
        "class_pixels": ["tags", "import", f"{tmp_path}/tags.csv", "--family", "mine"],
        "none.csv": ["tags", "import", f"{tmp_path}/none.csv", "--family", "mine"],
        "TAG=TYPE": ["tags", "import", "x.csv", "--family", "mine", "--type", "car"],
        "no tag family named": ["tags", "drop", "mine"],
        "did you mean car?": ["tags", "remove", "caar"],
        "a class's pixels": ["tags", "remove", "car"],
        "expected one of integer, real": ["tags", "add", "x", "--type", "blob"],
        "needs its values": ["tags", "add", "x", "--kind", "Restricted"],
        "expected one of Open": ["tags", "add", "x", "--kind", "Free"],
        "only a Restricted tag": ["tags", "add", "x", "--values", "a"],
        "is no BIGINT": [
            "tags",
            "add",
            "x",
            "--type",
            "integer",
            "--kind",
            "Restricted",
            "--values",
            "1,two",
        ],
        "a word of SQL": ["tags", "add", "select"],
        "is a column of every file": ["tags", "add", "path"],
        "'car' already exists": ["tags", "add", "car"],
        "did you mean car": ["tags", "set", "caar", "--kind", "Open"],
        "position tag": [*map_call, "--within", "5"],
        "within -5 m": [*map_call, "--within", "-5"],
    }
    for words, (status, out, err) in zip(commands, several(home, *commands.values()), strict=True):
        assert (status, out) == (1, ""), words
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert words in err


def test_help_and_usage(home: Path) -> None:
    """Every command has help; a wrong key is wrong usage, exit code 2."""
    names = ("add", "set", "extract", "import", "import-map", "remove", "families", "drop", "list")
    for (status, out, _), name in zip(
        several(home, *(["tags", name, "--help"] for name in names)), names, strict=True
    ):
        assert status == 0
        assert f"Usage: framesift tags {name}" in out.replace("root ", "framesift ")
    run = framesift(home, "tags", "import", "x.csv", "--family", "f", "--key", "colour")
    assert run.returncode == 2


@pytest.mark.wide
def test_groups(home: Path) -> None:
    """A group is defined, listed, asked as a class is, and removed; errors say what to do."""
    answers = several(
        home,
        ["tags", "group", "wheeled", "=", "car", "+", "Bicycle", "--json"],
        ["tags", "group", "--json"],
        ["tags", "group"],
        ["select", "--range", "wheeled=1:", "--columns", "car,bicycle,wheeled", "--json"],
        ["dataset", "create", "few", "--range", "wheeled=1:", "--limit", "3"],
        ["gaps", "few", "--at-least", "4", "--json"],
        ["tags", "group", "wheeled = car"],
        ["tags", "group", "more = wheeled + bicycle"],
        ["tags", "group", "more = carr"],
        ["tags", "group", "more"],
        ["tags", "remove", "wheeled", "--json"],
        ["tags", "group", "--json"],
        ["select", "--range", "wheeled=1:"],
    )
    defined, listed, table, asked = answers[:4]
    assert json.loads(defined[1])["classes"] == ["car", "bicycle"]
    (group,) = json.loads(listed[1])
    assert (group["tag"], group["family"], group["type"]) == (
        "wheeled", "tags_class_groups", "integer",
    )  # fmt: skip
    assert "wheeled" in table[1]
    assert "car + bicycle" in table[1]
    frames = json.loads(asked[1])["frames"]
    assert frames
    assert all(f["wheeled"] == f["car"] + f["bicycle"] > 0 for f in frames)
    lacks = {gap["value"]: gap for gap in json.loads(answers[5][1])["gaps"]}
    assert lacks["wheeled"]["frames"] == 3
    assert lacks["wheeled"]["catalog_frames"] == len(frames)
    assert lacks["wheeled"]["command"].startswith("framesift select --range wheeled=1: --at ")
    taken, nested, unknown, unfinished = answers[6:10]
    assert "tag 'wheeled' already exists" in taken[2]
    assert "wheeled is a group itself; name its classes instead: car + bicycle" in nested[2]
    assert "unknown class 'carr': did you mean car?" in unknown[2]
    assert "expected a tag and its classes, such as vehicle = car + truck + bus" in unfinished[2]
    removed, none, gone = answers[10:]
    assert json.loads(removed[1]) == {"tag": "wheeled", "files": FRAMES}
    assert json.loads(none[1]) == []
    assert "unknown class 'wheeled'" in gone[2]
