"""The command line against a server: the same words as on the home itself."""

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.api.servers import SEVERAL, environment, framesift, serving
from tests.pipeline.homes import FRAMES, REPOSITORY, copy_home

COMMANDS = [
    ["source", "list"],
    ["classes"],
    ["classes", "--by", "camera", "--range", "car=1:"],
    ["classes", "--quantiles", "--camera", "front_center"],
    ["histogram", "car", "--zero", "car", "--bins", "5"],
    ["histogram", "camera", "car", "--edges", "car=0,1,1000000"],
    ["tags", "list"],
    ["sql", "select count(*) from metaocean"],
    [
        "sql",
        "select scene, car from metaocean_view where car > 100 order by fkey",
        "--format",
        "table",
    ],
    ["sql", "select fkey from metaocean order by fkey", "--format", "ndjson", "--at", "3"],
    ["sql", "select car from metaocean_view", "--explain"],
    ["sql", "select nope from metaocean"],
    ["select", "--range", "car=10000:", "--order", "car desc"],
    ["select", "--range", "car=9000000:"],
    ["select", "--range", "car=10000:", "--explain"],
    ["select", "--has", "bicycle", "--format", "csv"],
    ["select", "--range", "cra=1:"],
    ["dataset", "diff", "city@1", "city@2"],
    ["dataset", "export", "city"],
    ["dataset", "export", "city@1", "--format", "jsonl", "--split", "train"],
    ["dataset", "export", "city", "--format", "parquet"],
    ["dataset", "list"],
    ["dataset", "show", "city@1"],
    ["dataset", "show", "nope"],
    ["gaps", "city", "--at-least", "30", "--split", "validation"],
    ["gaps", "city"],
    ["jobs", "list"],
    ["jobs", "show", "nope"],
    ["jobs", "logs", "nope"],
]
"""Commands that only read: asked of one home, by both ways."""


def several(home: Path, commands: list[list[str]]) -> list[list[Any]]:
    """Exit code, output and errors of each."""
    run = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)],
        env=environment(home), cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    ended: list[list[Any]] = json.loads(run.stdout)
    return ended


@pytest.fixture(scope="module")
def served(
    catalogued: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, str]]:
    """A home with datasets, and a server of it."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("remote"))
    ended = several(
        home,
        [
            ["dataset", "create", "city", "--split", "train=0.5,validation=0.5"],
            ["dataset", "split", "city", "--split", "train=0.75,validation=0.25"],
            ["dataset", "create", "few", "--cover", "bicycle=2"],
        ],
    )
    assert [status for status, _, _ in ended] == [0, 0, 0]
    with serving(home) as (url, _):
        yield home, url


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_the_same_answers(served: tuple[Path, str], tmp_path: Path, as_json: bool) -> None:
    """Output, errors and exit codes: of the home, and of its server from an empty home."""
    home, url = served
    commands = [
        [
            *command,
            *(["--json"] if as_json and command[:2] != ["dataset", "export"] else []),
        ]
        for command in COMMANDS
        if not (as_json and command[:2] == ["jobs", "logs"])
    ]
    here = several(home, commands)
    there = several(tmp_path / "empty", [["--server", url, *command] for command in commands])
    for command, one, other in zip(commands, here, there, strict=True):
        assert other == one, command
    assert not (tmp_path / "empty").exists()


def test_files_are_the_same(served: tuple[Path, str], tmp_path: Path) -> None:
    """Selections, statements and datasets written to files, in every form."""
    home, url = served
    commands = [
        ["select", "--range", "car=1:", "--format", "parquet", "--out", "a.parquet"],
        ["select", "--range", "car=9000000:", "--format", "arrow", "--out", "b.arrow"],
        ["sql", "select * from metaocean order by fkey", "--format", "arrow", "--out", "c.arrow"],
        ["dataset", "export", "city", "--format", "parquet", "--out", "d.parquet"],
        ["dataset", "export", "city", "--format", "files", "--with-labels", "--out", "e.txt"],
    ]
    for name, before in (("here", []), ("there", ["--server", url])):
        (tmp_path / name).mkdir()
        asked = [
            [*before, *command[:-1], str(tmp_path / name / command[-1])] for command in commands
        ]
        assert [status for status, _, _ in several(home, asked)] == [0] * len(asked)
    for file in (tmp_path / "here").iterdir():
        other = tmp_path / "there" / file.name
        if file.suffix == ".arrow":  # with other padding
            one, two = (pa.ipc.open_file(path).read_all() for path in (file, other))
            assert two.equals(one), file.name
            assert two.schema.equals(one.schema), file.name
        else:
            assert other.read_bytes() == file.read_bytes(), file.name
    assert len(list((tmp_path / "there").iterdir())) == len(commands)


def test_what_changes_changes_the_server(home: Path, tmp_path: Path) -> None:
    """Datasets, tags, sources, stagings and scans are made there, with a home's own words."""
    table = tmp_path / "weather.csv"
    fkey = json.loads(framesift(home, "select", "--limit", "1", "--json").stdout)["frames"][0][
        "fkey"
    ]
    table.write_text(f"fkey,weather\n{fkey},rain\nnowhere,sun\n")
    commands = [
        ["dataset", "create", "cars", "--range", "car=1:", "--split", "train=1", "--seed", "3"],
        ["dataset", "create", "m", "--match", "dataset:cars", "--frames", "6", "--tolerance", "1"],
        ["dataset", "create", "s", "--sample", "6", "--stratify", "camera", "--allow-leakage"],
        ["dataset", "extend", "m", "--gap", "bicycle=3"],
        ["select", "--has", "bicycle", "--save", "bikes"],
        ["tags", "add", "weather", "--kind", "Restricted", "--values", "sun,rain"],
        ["tags", "import", str(table), "--family", "w2", "--key", "fkey", "--prefix", "w_",
         "--rejected", str(tmp_path / "rejected.csv")],
        ["tags", "import", str(tmp_path / "none.csv"), "--family", "w3"],
        ["source", "add", "docs", str(REPOSITORY / "docs")],
        ["source", "add", "docs", str(REPOSITORY / "docs")],
        ["source", "remove", "docs"],
        ["ingest", "a2d2", "--errors"],
        ["ingest", "none"],
    ]  # fmt: skip
    other = tmp_path / "other"
    shutil.copytree(home, other)
    here = several(home, commands)
    rejected = (tmp_path / "rejected.csv").read_text()
    with serving(other) as (url, _):
        remote = ["--server", url]
        there = several(tmp_path / "empty", [[*remote, *command] for command in commands])
        staged = json.loads(framesift(tmp_path, *remote, "stage", "cars", "--json").stdout)
        scanned = framesift(tmp_path, *remote, "ingest", "a2d2", "--full")
        jobs = json.loads(framesift(tmp_path, *remote, "jobs", "list", "--json").stdout)
        staging = next(job["name"] for job in jobs if job["kind"] == "stage")
        log = framesift(tmp_path, *remote, "jobs", "logs", staging).stdout
    for command, one, two in zip(commands, here, there, strict=True):
        assert [str(part).replace(str(other), str(home)) for part in two] == [
            str(part) for part in one
        ], command
    assert (tmp_path / "rejected.csv").read_text() == rejected
    assert staged["files"] == staged["files_copied"] > 0
    assert staged["cache"] == str(other / "cache")
    assert '"files_copied"' in log
    assert f"counted {FRAMES} frames" in scanned.stdout
    listed = json.loads(framesift(other, "dataset", "list", "--json").stdout)
    assert [found["name"] for found in listed] == ["bikes", "cars", "m", "m", "s"]


@pytest.mark.parametrize(
    "command",
    [["compact"], ["user", "list"], ["catalog", "backup", "x"], ["serve"], ["watch", "a2d2"],
     ["tags", "families"]],
)  # fmt: skip
def test_what_needs_a_home_says_so(tmp_path: Path, command: list[str]) -> None:
    """Nothing is done on the home of this machine by mistake."""
    for variables, before in (
        ({}, ["--server", "http://127.0.0.1:9"]),
        ({"FRAMESIFT_SERVER": "http://127.0.0.1:9"}, []),
    ):
        run = framesift(tmp_path / "home", *before, *command, variables=variables)
        assert (run.returncode, run.stdout) == (1, "")
        assert "works on a home on its own machine" in run.stderr
    assert not (tmp_path / "home").exists()


def test_options_of_a_home_are_refused(served: tuple[Path, str]) -> None:
    """A scan's engine and a stage's cache are the server's affair."""
    home, url = served
    for command in (["ingest", "a2d2", "--workers", "2"], ["stage", "city", "--cache", "/tmp/x"]):
        run = framesift(home, "--server", url, *command)
        assert run.returncode == 1
        assert "server" in run.stderr
        assert run.stderr.count("\n") == 1


def test_no_server_is_one_line(tmp_path: Path) -> None:
    """Nothing listens there; no URL at all."""
    for url in ("http://127.0.0.1:9", "gopher://x", "http://127.0.0.1:port"):
        run = framesift(tmp_path, "--server", url, "classes")
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr.startswith("error: ")
        assert run.stderr.count("\n") == 1


def test_tokens_are_sent_to_their_server_and_kept_apart(home: Path, tmp_path: Path) -> None:
    """By option, by environment, by login; the environment's only to the environment's server."""
    framesift(home, "user", "add", "anna", "--role", "dataadmin", "--no-password")
    made = framesift(home, "token", "create", "t", "--user", "anna", "--scope", "read", "--json")
    token = json.loads(made.stdout)["token"]
    config = tmp_path / "config" / "framesift"
    own = {"FRAMESIFT_CONFIG": str(config)}
    with serving(home, authenticates=True) as (url, _):
        asked = ["--server", url, "classes", "--json"]
        refused = framesift(tmp_path, *asked, variables=own)
        assert "send 'Authorization: Bearer TOKEN'" in refused.stderr
        assert framesift(tmp_path, "--token", token, *asked, variables=own).returncode == 0
        for server, status in ((url, 0), ("http://127.0.0.1:9", 1)):
            variables = own | {"FRAMESIFT_TOKEN": token, "FRAMESIFT_SERVER": server}
            assert framesift(tmp_path, *asked, variables=variables).returncode == status

        wrong = framesift(tmp_path, "login", url, stdin=f"{token}x\n", variables=own)
        assert wrong.returncode == 1
        assert not config.exists()
        kept = framesift(tmp_path, "login", url, stdin=f"{token}\n", variables=own)
        assert (kept.returncode, kept.stderr) == (0, "")
        assert token not in kept.stdout
        file = config / "tokens.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(config.stat().st_mode) == 0o700
        assert framesift(tmp_path, *asked, variables=own).returncode == 0
        forbidden = framesift(tmp_path, "--server", url, "tags", "add", "weather", variables=own)
        assert "may read with this token" in forbidden.stderr
        file.chmod(0o644)
        assert (
            "other users may read these tokens" in framesift(tmp_path, *asked, variables=own).stderr
        )
        file.chmod(0o600)
        assert framesift(tmp_path, "logout", url, variables=own).returncode == 0
        assert framesift(tmp_path, *asked, variables=own).returncode == 1
    assert json.loads(file.read_text()) == {}
