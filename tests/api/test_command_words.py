"""What commands accept, how they end, and what they say to likely mistakes."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from api.cli import destination
from api.cli.default_server import default_server, keep_default_server
from api.cli.destination import GlobalOptions
from api.cli.exit_codes import ExitCode
from catalog.errors import InvalidInput
from tests.api.servers import FRAMESIFT, environment, several
from tests.pipeline.homes import FRAMES, REPOSITORY, SAMPLE, copy_home

pytestmark = pytest.mark.wide

MISTAKES = [
    (["select", "--camera", "front"], "did you mean front_center or front_left or front_right?"),
    (["select", "--has", "camra"], "unknown class 'camra': did you mean car?"),
    (["sql", "select car from metaocean"], "It is a tag: ask metaocean_view for it, or t_car"),
    (["sql", "select metaocean.car from metaocean"], "or t_car, whose column is value"),
    (["source", "add", "x", str(REPOSITORY / "README.md")], "is a file: a source is a folder"),
    (["select", "--columns", "fkeys"], "unknown column 'fkeys': did you mean fkey?"),
    (["select", "--limit", "0"], "limit: got 0, expected 1 or more"),
    (["select", "--range", "nosuch=1:"], "'nosuch': framesift classes, or GET /v1/classes, lists"),
    (["histogram", "nosuch"], "'nosuch': framesift tags list, or GET /v1/tags, lists them."),
    (["cache", "limit", "1GB"], "cache limit 1GB: which limit? Give it by its option, such as --h"),
    (
        ["webhook", "add", "ci", "https://ci.example.org/hook"],
        "add it to FRAMESIFT_WEBHOOK_HOSTS (HOST or HOST:PORT, with commas between) where 'frames",
    ),
    (["context", "over-there"], "expected https://HOST[:PORT] of a server, or the word home"),
]


def test_mistakes_are_told_what_to_do(home: Path) -> None:
    """Each message names what to write instead."""
    for (arguments, words), (status, out, err) in zip(
        MISTAKES, several(home, *[arguments for arguments, _ in MISTAKES]), strict=True
    ):
        assert (status, out) == (1, ""), arguments
        assert words in err, (arguments, err)


def test_an_empty_catalog_says_that_it_is(tmp_path: Path) -> None:
    """No class is like another's name where no labels are counted."""
    home = tmp_path / "home"
    add = ["source", "add", "a2d2", str(SAMPLE)]
    _, answer = several(home, *[add, ["select", "--has", "car"]])
    assert answer[0] == 1
    assert "unknown class 'car'" in answer[2]
    assert "No labels are counted yet: framesift ingest SOURCE" in answer[2]
    assert "did you mean" not in answer[2]


def test_spellings_that_are_accepted(catalogued: Path) -> None:
    """A2D2's folder of a camera is the camera; an exact number of pixels is told to be one."""
    commands = [
        ["select", "--camera", "cam_front_center", "--json"],
        ["select", "--camera", "front_center", "--json"],
        ["select", "--range", "bicycle=10000"],
        ["select", "--range", "bicycle=0"],
        ["select", "--limit", "1", "--columns", "fkey,car", "--format", "csv-named"],
        ["select", "--limit", "1", "--columns", "car", "--columns", "fkey"],
        ["select", "--limit", "1", "--columns", "fkey", "--json"],
        ["select", "-h"],
    ]
    folder, camera, exact, none, csv, table, body, help_ = several(catalogued, *commands)
    assert json.loads(folder[1])["frames"] == json.loads(camera[1])["frames"] != []
    assert "exactly 10,000 pixels; bicycle=10000: means so many or more" in exact[2]
    assert "exactly" not in none[2]
    assert csv[1].startswith('"fkey","car"\n"local:')
    assert table[1].split()[:2] == ["car", "fkey"]
    assert [list(frame) for frame in json.loads(body[1])["frames"]] == [["fkey"]]
    assert help_[1].startswith("Usage: ")


def test_strict_ends_with_what_is_short(home: Path) -> None:
    """The answer is the same; by itself everything that was done ends with 0."""
    (targets := home.parent / "wanted.json").write_text('{"camera": {"front_center": 1.0}}')
    short = ["--match", str(targets), "--frames", str(FRAMES)]
    commands = {
        3: [["select", "--range", "car=9000000:"], ["sql", "select fkey from t_car where 1 = 0"]],
        4: [["dataset", "create", "d", *short], ["dataset", "create", "e", "--cover", "car=9999"]],
    }
    for code, arguments in commands.items():
        plain, strict = (
            several(home, *arguments),
            several(home, *[[*c, "--strict"] for c in arguments]),
        )
        assert [ended[0] for ended in plain] == [0, 0], plain
        assert [ended[0] for ended in strict] == [code, code], strict
    results = several(home, ["select", "--strict"], ["sql", "values 1", "--strict"])
    assert [ended[0] for ended in results] == [0, 0]


def test_strict_ends_with_bad_files(catalogued: Path, tmp_path: Path) -> None:
    """A damaged label, and rows that match no file; what is good is taken all the same."""
    home = copy_home(catalogued, tmp_path, with_source=True)
    label = min((tmp_path / "source").rglob("*_label_*.png"))
    label.write_bytes(label.read_bytes()[:-100])
    (rows := tmp_path / "rows.csv").write_text("fkey,mood\nlocal:nowhere:file.png,good\n")
    requests = [["ingest", "a2d2"], ["tags", "import", str(rows), "--family", "moods"]]
    commands = [*([*command, "--strict"] for command in requests), *requests, ["ingest", "a2d2"]]
    ended = several(home, *commands)
    assert [status for status, *_ in ended] == [5, 5, 0, 0, 0], ended
    assert f"counted {FRAMES} frames" not in ended[0][1]
    assert label.name in ended[0][1] + ended[0][2]


def test_every_exit_code_is_in_the_table() -> None:
    """docs/command-line.md has a row for each."""
    page = (REPOSITORY / "docs" / "command-line.md").read_text(encoding="utf-8")
    rows = [int(number) for number in re.findall(r"^\| (\d) \|", page, re.MULTILINE)]
    assert rows == [0, *ExitCode]


def test_a_server_is_named_before_or_after(tmp_path: Path) -> None:
    """Also below a group; and what needs a home refuses it there, too."""
    server = ["--server", "http://127.0.0.1:9"]
    commands = [["info", *server], ["source", "list", *server], [*server, "source", "list"]]
    for _, _, err in several(tmp_path / "none", *commands):
        assert "http://127.0.0.1:9: no answer" in err
    for status, _, err in several(tmp_path / "none", *[["serve", *server], ["compact", *server]]):
        assert status == 1
        assert "works on a home on its own machine" in err


def test_a_context_is_asked_where_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after --server, FRAMESIFT_SERVER and FRAMESIFT_HOME, and can be ended."""
    for name in ("HOME", "SERVER"):
        monkeypatch.delenv(f"FRAMESIFT_{name}", raising=False)
    monkeypatch.setenv("FRAMESIFT_CONFIG", str(tmp_path))
    destination.choose(GlobalOptions(command="compact"))
    assert destination.server() is None
    keep_default_server(tmp_path, "https://team:8008")
    assert destination.server() == "https://team:8008"
    with pytest.raises(InvalidInput, match="leave the default: 'framesift context home'"):
        destination.home()
    monkeypatch.setenv("FRAMESIFT_HOME", str(tmp_path / "home"))
    assert destination.server() is None
    monkeypatch.setenv("FRAMESIFT_SERVER", "https://other:8008")
    assert destination.server() == "https://other:8008"
    destination.choose(GlobalOptions(server="https://third:8008"))
    assert destination.server() == "https://third:8008"
    destination.choose(GlobalOptions())
    keep_default_server(tmp_path, None)
    assert default_server(tmp_path) is None
    (tmp_path / "context.json").write_text("[]")
    with pytest.raises(InvalidInput, match=r"context\.json: expected"):
        default_server(tmp_path)


def test_names_of_commands_are_completed(catalogued: Path) -> None:
    """By the shell's own way of asking."""

    def completed(words: str) -> list[str]:
        completion = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
        run = subprocess.run(
            [str(FRAMESIFT)],
            env={**environment(catalogued), "_FRAMESIFT_COMPLETE": "complete_bash", **completion},
            cwd=REPOSITORY, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return run.stdout.split()

    assert completed("framesift sel") == ["select"]
    assert completed("framesift select --colu") == ["--columns"]
