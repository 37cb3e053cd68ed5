"""The command ``framesift``: help, exit codes, one-line errors, --json."""

import json
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.main import get_command

from api.cli.main import app
from catalog.records.datasets import recorded_datasets
from catalog.records.jobs import recorded_jobs
from catalog.records.sources import recorded_sources
from tests.api.servers import FRAMESIFT, environment, framesift, several
from tests.pipeline.homes import FRAMES, REPOSITORY, SAMPLE, open_home
from tests.pipeline.test_datasets import make
from tests.pipeline.test_staging import as_nobody, needs_root, readable
from tests.zygote import run_python


def commands_below(group: Any, name: str = "") -> Iterator[str]:
    """A command's name and those of all below it; the program's own is empty."""
    yield name
    for word in getattr(group, "commands", {}):
        yield from commands_below(group.get_command(None, word), f"{name} {word}".strip())


COMMANDS = tuple(commands_below(get_command(app)))


def one_error(run: "subprocess.CompletedProcess[str]", *parts: str) -> None:
    """Exit code 1, nothing on stdout, one line `error: ...` on stderr that has the parts."""
    assert run.returncode == 1, (run.returncode, run.stdout, run.stderr)
    assert run.stderr.startswith("error: "), run.stderr
    assert run.stderr.count("\n") == 1, run.stderr
    assert run.stdout == ""
    for piece in parts:
        assert piece in run.stderr


@pytest.mark.wide
def test_every_command_has_help() -> None:
    """--help of every command, each with a sentence and its options, exit code 0."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom api.cli.main import app\n"
        "for name in sys.argv[1:]:\n"
        "    run = CliRunner().invoke(app, [*name.split(), '--help'])\n"
        "    assert run.exit_code == 0 and 'Usage: ' in run.output, (name, run.output)\n"
        "    assert len(run.output.split()) > 10, name\n"
    )
    assert run_python("-c", code, *COMMANDS).stderr == ""


def test_exit_codes(catalogued: Path) -> None:
    """0 done, 1 failed, 2 wrong usage."""
    assert framesift(catalogued, "--version").stdout.startswith("framesift 0.")
    assert framesift(catalogued, "info").returncode == 0
    assert framesift(catalogued, "dataset", "show", "nobody").returncode == 1
    for wrong in (["nonsense"], ["select", "--nonsense"], ["ingest"], ["select", "--limit", "x"]):
        run = framesift(catalogued, *wrong)
        assert (run.returncode, run.stdout) == (2, "")
        assert "Traceback" not in run.stderr


BAD_INPUT = [
    (["ingest", "nobody"], ("no source named 'nobody'", "a2d2")),
    (["watch", "nobody"], ("no source named 'nobody'", "a2d2")),
    (["watch", "a2d2", "--events", "amqp://x/y"], ("events 'amqp://x/y'", "expected inotify")),
    (["watch", "a2d2", "--events-config", "x"], ("--events kafka://",)),
    (["source", "remove", "nobody"], ("no source named 'nobody'",)),
    (["source", "add", "b", "/no/such/folder"], ("/no/such/folder", "no such folder")),
    (["source", "add", "b", "gs://bucket"], ("scheme 'gs' is not supported",)),
    (["source", "add", "a2d2", "."], ("source 'a2d2' already exists",)),
    (["source", "add", "a/b", "."], ("source name 'a/b'",)),
    (["source", "add", "b", ".", "--platform", "Tape"], ("unknown platform 'Tape'", "IBM COS")),
    (["dataset", "show", "nobody"], ("no dataset named 'nobody'",)),
    (["dataset", "show", "nobody@x"], ("no dataset named 'nobody@x'",)),
    (["stage", "nobody"], ("no dataset named 'nobody'",)),
    (["train", "nobody"], ("no dataset named 'nobody'",)),
    (["validate", "nobody", "nobody"], ("no dataset named 'nobody'",)),
    (["jobs", "show", "nobody"], ("no job named 'nobody'",)),
    (["jobs", "logs", "nobody"], ("no job named 'nobody'",)),
    (["jobs", "wait", "nobody"], ("no job named 'nobody'",)),
    (["jobs", "cancel", "nobody"], ("no job named 'nobody'",)),
    (["jobs", "resume", "nobody"], ("no job named 'nobody'",)),
    (["select", "--range", "cra=1:"], ("unknown class 'cra': did you mean car",)),
    (["select", "--range", "car"], ("range 'car'", "CLASS=LOWEST:HIGHEST")),
    (["select", "--range", "car=5:1"], ("lowest 5 is above highest 1",)),
    (["select", "--camera", "nose"], ("unknown camera 'nose'",)),
    (["select", "--where", "car >"], ("SQL0104N",)),
    (["select", "--limit", "0"], ("limit",)),
    (["select", "--format", "parquet"], ("--out",)),
    (["select", "--out", "x.csv"], ("--format csv",)),
    (["select", "--format", "csv", "--out", "/no/such/folder/x.csv"], ("cannot be written",)),
    (["sql", "select ownerzzz from metaocean"], ('SQL0206N  "OWNERZZZ" is not valid',)),
    (["sql", "drop table metaocean"], ("SQL0142N",)),
    (["sql", "select * from metaocean", "--format", "table", "--out", "x"], ("--format csv",)),
    (["dataset", "create", "a/b"], ("dataset name 'a/b'",)),
    (["dataset", "create", "a", "--split", "x=2"], ("the shares sum to 2, not 1",)),
    (["dataset", "create", "a", "--range", "car=9000000:"], ("no frames",)),
    (["dataset", "create", "a", "--stratify", "camera"], ("--sample",)),
    (["dataset", "create", "a", "--sample", "5", "--stratify", "car:2,1"], ("rising edges",)),
    (["dataset", "create", "a", "--sample", "5", "--stratify", "cra"], ("unknown column 'cra'",)),
    (["dataset", "create", "a", "--match", "/no/such.json", "--frames", "5"], ("cannot be read",)),
    (["dataset", "create", "a", "--match", "dataset:b", "--frames", "5"], ("no dataset named",)),
    (["dataset", "create", "a", "--match", "dataset:b"], ("--frames",)),
    (["dataset", "create", "a", "--cover", "car"], ("CLASS=FRAMES",)),
    (["dataset", "create", "a", "--cover", "cra=1"], ("unknown class 'cra'",)),
    (["dataset", "create", "a", "--cover-where", "car > 1"], ("CONDITION=FRAMES",)),
    (["dataset", "create", "a", "--cover", "car=1", "--uncertain", "car", "--budget", "1"],
     ("one method",)),
    (["dataset", "create", "a", "--split", "a=0.5,b=0.5", "--split-by", "hue"], ("hue",)),
    (["dataset", "create", "a", "--disjoint-from", "nobody"], ("no dataset named 'nobody'",)),
    (["dataset", "split", "nobody", "--split", "a=1"], ("no dataset named 'nobody'",)),
    (["dataset", "extend", "nobody", "--gap", "car=1"], ("no dataset named 'nobody'",)),
    (["dataset", "extend", "nobody"], ("--gap",)),
    (["dataset", "diff", "nobody", "nobody"], ("no dataset named 'nobody'",)),
    (["dataset", "export", "nobody"], ("no dataset named 'nobody'",)),
]  # fmt: skip


@pytest.mark.wide
def test_every_bad_input_is_one_line(catalogued: Path, tmp_path: Path) -> None:
    """What was given, expected and to do; no traceback; nothing of it kept."""
    home = tmp_path / "home"
    shutil.copytree(catalogued, home)
    ended = several(home, *[arguments for arguments, _ in BAD_INPUT])
    for (arguments, parts), (status, out, err) in zip(BAD_INPUT, ended, strict=True):
        one_error(subprocess.CompletedProcess(arguments, status, out, err), *parts)
    workspace = open_home(home)
    assert [source.name for source in recorded_sources(workspace.records)] == ["a2d2"]
    assert recorded_datasets(workspace.records) == []
    assert recorded_jobs(workspace.records) == []
    assert not (home / "datasets").exists()


def test_missing_class_list_is_one_line(tmp_path: Path) -> None:
    """A source without class_list.json: named, and nothing catalogued."""
    (tmp_path / "source").mkdir()
    home = tmp_path / "home"
    assert framesift(home, "source", "add", "a", tmp_path / "source").returncode == 0
    one_error(framesift(home, "ingest", "a"), "class_list.json", "--class-list")
    assert json.loads(framesift(home, "info", "--json").stdout)["files"] == 0


def _png(path: Path, width: int, height: int) -> None:
    """A valid black PNG."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    rows = zlib.compress((b"\0" + b"\0" * 3 * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


@pytest.mark.wide
def test_bad_labels_are_recorded_and_the_scan_goes_on(tmp_path: Path) -> None:
    """A truncated PNG and a label of another size than its image: exit 0, both listed as bad."""
    root = tmp_path / "source"
    shutil.copytree(SAMPLE, root)
    labels = sorted(root.rglob("*_label_*.png"))
    labels[0].write_bytes(labels[0].read_bytes()[:500])
    with Image.open(labels[1]) as image:
        width, height = image.size
    _png(labels[1], width // 2, height)
    home = tmp_path / "home"
    framesift(home, "source", "add", "a2d2", root)
    run = framesift(home, "ingest", "a2d2", "--json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["frames"] == FRAMES - 2
    assert report["bad_files"] == 2
    bad = {problem["key"]: problem["reason"] for problem in report["problems"]}
    assert set(bad) == {str(label.relative_to(root)) for label in labels[:2]}
    listed = json.loads(framesift(home, "ingest", "a2d2", "--errors", "--json").stdout)
    assert listed["problems"] == report["problems"]
    output = framesift(home, "ingest", "a2d2", "--errors").stdout
    assert all(key in output for key in bad)


@pytest.mark.wide
def test_a_source_without_a_usable_label_is_not_blamed_for_its_names(tmp_path: Path) -> None:
    """Labels that are pointers of Git LFS: what they are and what to do, not that names are odd."""
    root = tmp_path / "source"
    shutil.copytree(SAMPLE, root)
    for label in root.rglob("*_label_*.png"):
        label.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n")
    home = tmp_path / "home"
    framesift(home, "source", "add", "a2d2", root)
    output = framesift(home, "ingest", "a2d2").stdout
    assert "no frames: no label or image could be used; what was wrong with them" in output
    assert "is not a PNG image but a Git LFS pointer, which stands for the file: git lfs" in output
    assert "naming rules" not in output


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FRAMESIFT_QUERY_TIMEOUT_S", "soon"),
        ("FRAMESIFT_QUERY_TIMEOUT_S", "0"),
        ("FRAMESIFT_QUERY_MAX_ROWS", "-1"),
        ("FRAMESIFT_QUERY_MEMORY", "lots"),
        ("FRAMESIFT_LOCK_WAIT_S", ""),
    ],
)
def test_a_bad_setting_is_one_line(catalogued: Path, variable: str, value: str) -> None:
    """The variable is named, with its value."""
    run = framesift(catalogued, "info", variables={variable: value})
    one_error(run, f"{variable}={value}")


def test_a_home_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    """The path is named; the file stays as it is."""
    (tmp_path / "file").write_text("mine")
    for command in (["info"], ["source", "list"], ["source", "add", "a", str(SAMPLE)]):
        one_error(framesift(tmp_path / "file", *command), str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.wide
@needs_root
def test_a_home_without_permission_is_one_line(home: Path, tmp_path: Path) -> None:
    """As another user: a home that cannot be made, and one of somebody else that can be read."""
    readable(tmp_path)
    (tmp_path / "locked").mkdir(mode=0o755)
    for folder in (tmp_path / "locked" / "home", home):
        for command in (
            ["source", "list"],
            ["source", "add", "b", str(SAMPLE)],
            ["ingest", "a2d2"],
        ):
            run = framesift(folder, *command, prefix=tuple(as_nobody()))
            if folder == home and run.returncode == 0:
                continue  # reading somebody else's records is fine
            one_error(run)
    assert list((tmp_path / "locked").iterdir()) == []


@needs_root
def test_a_cache_without_permission_is_one_line(home: Path, tmp_path: Path) -> None:
    """The cache is named, and nothing is staged."""
    make(open_home(home))
    (tmp_path / "file").touch()
    run = framesift(home, "stage", "val", "--cache", tmp_path / "file" / "cache")
    one_error(run, "no dataset named 'val'")
    run = framesift(home, "stage", "streets", "--cache", tmp_path / "file" / "cache")
    one_error(run, f"cache {tmp_path / 'file' / 'cache'}: cannot be written: Not a directory")


@pytest.mark.wide
def test_json_of_every_command_parses(home: Path, tmp_path: Path) -> None:
    """One JSON document on stdout, and nothing beside it."""
    cache = str(tmp_path / "cache")
    commands = [
        ["info"], ["source", "list"], ["source", "add", "b", str(REPOSITORY / "docs")],
        ["source", "remove", "b"], ["ingest", "a2d2"], ["ingest", "a2d2", "--errors"],
        ["classes"], ["tags", "list"], ["sql", "select count(*) from metaocean"],
        ["select", "--range", "car=1:", "--save", "cars"], ["dataset", "create", "all"],
        ["dataset", "list"], ["dataset", "show", "all"],
        ["stage", "all", "--cache", cache, "--prepare", "96x64"],
        ["jobs", "list"],
        ["sample-data", "--frames", "1", "--out", str(tmp_path / "drawn")],
    ]  # fmt: skip
    ended = several(home, *[[*command, "--json"] for command in commands])
    for command, (status, out, err) in zip(commands, ended, strict=True):
        assert status == 0, (command, err)
        json.loads(out)
    assert [d.name for d in recorded_datasets(open_home(home).records)] == ["all", "cars"]


@pytest.mark.wide
def test_a_reader_that_goes_away_is_no_traceback(catalogued: Path) -> None:
    """Framesift sql ... | head -1."""
    statement = "select m.fkey from metaocean m, metaocean n"
    for options in ("", "--format table", "--json"):
        run = subprocess.run(
            ["/bin/sh", "-c", f'"$0" sql "$1" {options} | head -1', str(FRAMESIFT), statement],
            env=environment(catalogued), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.stderr == ""
        assert run.stdout.count("\n") == 1


def test_a_statement_comes_from_stdin(catalogued: Path) -> None:
    """'-' reads it, as a file is piped in."""
    run = framesift(catalogued, "sql", "-", stdin="select count(*) as n from t_car;\n")
    assert run.stdout == f"0,{FRAMES}\n"


@pytest.mark.wide
def test_answers_are_written_whole_to_files(catalogued: Path, tmp_path: Path) -> None:
    """CSV, JSON, Parquet and Arrow; no part is left, an older file is replaced."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for format_ in ("csv", "json", "parquet", "arrow"):
        out = tmp_path / f"out.{format_}"
        out.write_text("old")
        run = framesift(
            catalogued, "select", "--range", "car=1:", "--format", format_, "--out", out
        )
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    frames = json.loads((tmp_path / "out.json").read_text())
    assert pq.read_table(tmp_path / "out.parquet").num_rows == len(frames)
    assert pa.ipc.open_file(tmp_path / "out.arrow").read_all().num_rows == len(frames)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == len(frames)
    assert len(list(tmp_path.iterdir())) == 4


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """Brackets and colons in a name are not taken for markup or pictures."""
    home = tmp_path / "home"
    name = "[b] :car: [red]x"
    for command in (["source", "add", "x", str(SAMPLE), "--datasource", name], ["source", "list"]):
        run = framesift(home, *command)
        assert run.returncode == 0, run.stderr
        assert name in run.stdout
    one_error(framesift(home, "ingest", "[b] :car:"), "no source named '[b] :car:'")
