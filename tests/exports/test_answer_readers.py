"""Answers, runs and events, read by the programs that users have for them: `.venv-tools`."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from catalog.accounts import users
from catalog.records.store import RecordStore
from query.run.result_format import MEDIA_TYPES
from tests.api.servers import framesift, serving, wait_until
from tests.exports.test_readers import read_by
from tests.pipeline.homes import FRAMES, REPOSITORY, copy_home
from tests.training.commands import SMALL, run
from tests.training.drawn_frames import draw_frames, every_fourth, write_manifest

pytestmark = pytest.mark.readers

TOOLS = REPOSITORY / ".venv-tools" / "bin"
PASSWORD = "a long password"
STATEMENT = """select fkey, cast(car as bigint) as "größe", '=1+ä' as formula, '-5' as minus,
nullif(cast(car as bigint), (select max(cast(car as bigint)) from metaocean_view)) as gaps,
cast(car as double) / 8 as part, decimal(cast(car as double) / 8, 12, 3) as exact,
cast('2026-03-11 13:03:14' as timestamp) as moment, date('2026-03-11') as day
from metaocean_view where car is not null order by fkey"""
SUFFIXES = {
    "csv": "csv", "ndjson": "ndjson", "arrow-stream": "stream", "arrow": "arrow",
    "parquet": "parquet", "xlsx": "xlsx",
}  # fmt: skip


@pytest.fixture(scope="module")
def home(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a dataset of two splits and a user."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("read"))
    made = framesift(
        home, "dataset", "create", "city", "--split", "train=0.5,validation=0.5",
        "--split-by", "frame", "--allow-leakage",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    users.add(RecordStore(home / "records" / "records.sqlite"), "rita", ["admin"], PASSWORD)
    return home


@pytest.fixture(scope="module")
def asked(home: Path) -> Iterator[httpx.Client]:
    """A client of a server that authenticates, logged in."""
    with serving(home, authenticates=True) as (url, _), httpx.Client(base_url=url) as client:
        client.timeout = httpx.Timeout(300)
        login = client.get("/auth/v1/token", auth=("rita", PASSWORD))
        client.headers["Authorization"] = f"Bearer {login.headers['x-auth-token']}"
        yield client


def test_tables(home: Path, asked: httpx.Client, tmp_path: Path) -> None:
    """pandas, polars and openpyxl: counts, names, types, missing values and texts, as in JSON."""
    out = tmp_path / "out"
    out.mkdir()
    expected: dict[str, list[dict[str, Any]]] = {}
    for route, body in (
        ("sql", {"statement": STATEMENT}),
        ("selections", {"ranges": [{"tag": "car", "lowest": 10_000}]}),
    ):
        in_json = asked.post(f"/v1/{route}", json=body).raise_for_status().json()
        expected[route] = in_json if route == "sql" else in_json["frames"]
        for kind, format_ in MEDIA_TYPES.items():
            if format_ != "json":
                sent = asked.post(f"/v1/{route}", json=body, headers={"Accept": kind})
                (out / f"{route}.{SUFFIXES[format_]}").write_bytes(sent.raise_for_status().content)
    frames = asked.get("/v1/datasets/city/export?format=jsonl").raise_for_status().text
    expected["dataset"] = [json.loads(line) for line in frames.splitlines()]
    for format_, suffix in (("csv", "csv"), ("parquet", "parquet"), ("xlsx", "xlsx")):
        run = framesift(
            home, "dataset", "export", "city", "--format", format_,
            "--out", out / f"dataset.{suffix}",
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
    assert len(expected["sql"]) == len(expected["dataset"]) == FRAMES
    assert 0 < len(expected["selections"]) < FRAMES
    assert {row["split"] for row in expected["dataset"]} == {"train", "validation"}
    read = read_by("tables", out, tmp_path / "cache")
    assert len(read) == 2 * len(SUFFIXES) + 3
    for file, tables in read.items():
        rows = expected[file.partition(".")[0]]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        assert {"pandas", "polars"} <= {*tables}
        for reader, table in tables.items():
            where = (file, reader)
            # polars takes the keys of JSON lines in an order of its own.
            names = sorted if file.endswith(".ndjson") else list
            assert names(table) == names(columns), where
            for name, values in columns.items():
                assert _alike(table[name]) == _alike(values), (where, name)
    (cell,) = {row["formula"] for row in expected["sql"]}
    assert cell == "=1+ä"
    assert [row["gaps"] for row in expected["sql"]].count(None) == 1


def _alike(values: list[Any]) -> list[Any]:
    """Values as CSV can tell them: no text from a number, no day from its midnight."""
    return [
        value
        if value is None
        else float(value)
        if isinstance(value, int | float) or value == "-5"
        else None
        if value == ""
        else value.removesuffix(" 00:00:00")
        for value in values
    ]


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice Calc is not installed")
def test_a_german_spreadsheet(asked: httpx.Client, tmp_path: Path) -> None:
    """Where a comma parts decimals: a workbook's numbers are numbers, CSV's are only in English."""
    statement = {"statement": STATEMENT}
    (expected, *_) = asked.post("/v1/sql", json=statement).json()
    for format_ in ("xlsx", "csv"):
        (kind,) = (kind for kind, name in MEDIA_TYPES.items() if name == format_)
        body = asked.post("/v1/sql", json=statement, headers={"Accept": kind}).content
        (tmp_path / f"rows.{format_}").write_bytes(body)
    profile = tmp_path / "profile"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><oor:items '
        'xmlns:oor="http://openoffice.org/2001/registry">'
        '<item oor:path="/org.openoffice.Setup/L10N">'
        '<prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>de-DE</value></prop>'
        "</item></oor:items>"
    )

    def cells(file: str, *options: str) -> list[tuple[str, str]]:
        """Type, or formula, and value of each cell of the first row, as Calc has them."""
        subprocess.run(
            ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", *options,
             "--convert-to", "fods", "--outdir", tmp_path, tmp_path / file],
            check=True, capture_output=True, timeout=300,
        )  # fmt: skip
        return _first_row((tmp_path / "rows.fods").read_bytes(), len(expected))

    numbers = [expected[name] for name in ("größe", "part", "exact")]
    names = [*expected]
    book = dict(zip(names, cells("rows.xlsx"), strict=True))
    assert [book[name][0] for name in ("größe", "part", "exact")] == ["float"] * 3
    assert [float(book[name][1]) for name in ("größe", "part", "exact")] == numbers
    assert book["formula"] == ("string", "=1+ä")
    assert book["minus"] == ("string", "-5")
    assert book["moment"] == ("date", "2026-03-11T13:03:14")
    assert book["day"][0] == "date"
    # Comma, quotation mark, UTF-8, from the first line; then English (USA), or the locale's.
    english = dict(zip(names, cells("rows.csv", "--infilter=CSV:44,34,76,1,,1033"), strict=True))
    assert [float(english[name][1]) for name in ("größe", "part", "exact")] == numbers
    assert english["formula"][0] == "formula"  # as docs/sql.md says of CSV
    german = dict(zip(names, cells("rows.csv", "--infilter=CSV:44,34,76,1,,1031"), strict=True))
    assert german["part"][0] != "float"


def _first_row(document: bytes, columns: int) -> list[tuple[str, str]]:
    from xml.etree import ElementTree

    office = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
    table = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
    rows = ElementTree.fromstring(document).iter(f"{table}table-row")
    next(rows)
    cells = []
    for cell in next(rows):
        is_formula = cell.get(f"{table}formula") is not None
        kind = "formula" if is_formula else cell.get(f"{office}value-type", "")
        value = cell.get(f"{office}value") or cell.get(f"{office}date-value")
        cells += [(kind, value or "".join(cell.itertext()).strip())] * int(
            cell.get(f"{table}number-columns-repeated", "1")
        )
    return cells[:columns]


def test_a_generated_client(asked: httpx.Client, tmp_path: Path) -> None:
    """Logs in, and gets pages, a selection, a dataset, a picture and errors as typed objects."""
    question = {"ranges": [{"tag": "car", "lowest": 10_000}]}
    expected = asked.post("/v1/selections", json=question).json()
    page = asked.get("/v1/frames", params={"range": "car=0:", "limit": 5}).json()
    fkey = expected["frames"][0]["fkey"]
    folder = tmp_path / "document"
    folder.mkdir()
    (folder / "openapi.json").write_bytes(asked.get("/openapi.json").content)
    about = {
        "url": str(asked.base_url), "user": "rita", "password": PASSWORD, "fkey": fkey,
        "dataset": "city@1", "question": question,
    }  # fmt: skip
    (folder / "server.json").write_text(json.dumps(about))
    read = read_by("openapi", folder, tmp_path / "cache")
    assert read["page"] == [frame["fkey"] for frame in page["frames"]]
    assert read["next"] is True
    assert 0 < read["count"] == len(expected["frames"]) < FRAMES
    assert read["fkeys"] == [frame["fkey"] for frame in expected["frames"]]
    assert read["cars"] == sum(frame["car"] for frame in expected["frames"])
    assert read["dataset"] == asked.get("/v1/datasets/city@1").json()
    assert read["dataset"]["splits"].keys() == {"train", "validation"}
    assert read["problem"][:2] == [404, "NotFound"]
    assert "no dataset named 'none'" in read["problem"][2]
    assert read["sqlcode"] == -204
    assert "The nearest is" in read["wrong"]
    assert bytes.fromhex(read["image"]) == b"\x89PNG\r\n\x1a\n"


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """URL of a server of MLflow whose runs are in SQLite, its artifacts behind it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    with (folder / "mlflow.log").open("wb") as log:
        server = subprocess.Popen(
            [TOOLS / "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder}/runs.sqlite",
             "--artifacts-destination", folder / "artifacts", "--port", port, "--workers", "1"],
            env=os.environ | {
                "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true",
                "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
            },
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:

        def is_up() -> bool:
            assert server.poll() is None, (folder / "mlflow.log").read_text()
            try:
                return httpx.get(f"{url}/health", timeout=5).is_success
            except httpx.TransportError:
                return False

        wait_until(is_up)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def test_mlflow_and_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training's run on MLflow's own server, its events on TensorBoard's: as metrics.jsonl."""
    write_manifest(tmp_path / "manifest", tmp_path, every_fourth(draw_frames(tmp_path, 8)))
    model = tmp_path / "night-3" / "model"
    with mlflow_server(tmp_path) as url:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
        monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "straßen")
        ended = run(
            "-m", "training.main", "--exec_mode", "train_and_evaluate", "--manifest",
            tmp_path / "manifest", "--model_dir", model, "--batch_size", "2", "--max_steps", "4",
            "--log_every", "2", "--evaluate_every", "1", *SMALL,
        )  # fmt: skip
        assert ended.status == 0, ended.err
        assert "warning: MLflow" not in ended.out
        read = read_by("mlflow", model, tmp_path / "cache")
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    record = json.loads((model / "run.json").read_text())
    assert (lines[0]["step"], lines[-1]["step"]) == (1, 4)
    assert (read["experiment"], read["name"], read["status"]) == ("straßen", "night-3", "FINISHED")
    for name in ("loss", "learning_rate", "images_per_s"):
        assert read["metrics"][name] == [[line["step"], line[name]] for line in lines]
    assert [step for step, _ in read["metrics"]["validation_miou"]] == [3, 4]
    assert read["params"]["batch_size"] == "2"
    assert read["tags"]["framesift.dataset_id"] == record["dataset"]["id"]
    assert {*read["artifacts"]} == {"run.json", "model.json"}
    assert read["record"] == record
    # One run, with no parent: REST has it as the client has.
    (of_rest,) = read["runs"]
    assert of_rest["info"]["status"] == "FINISHED"
    assert "mlflow.parentRunId" not in read["tags"]
    last = {
        metric["key"]: (metric["step"], metric["value"]) for metric in of_rest["data"]["metrics"]
    }
    assert last["loss"] == (4, lines[-1]["loss"])

    board = read_by("tensorboard", model / "tensorboard", tmp_path / "cache")
    assert board["served"].keys() == board["files"].keys() > {"loss", "learning_rate"}
    for name, events in board["files"].items():
        assert board["served"][name] == events
        if name in lines[0]:
            assert events == [[line["step"], pytest.approx(line[name])] for line in lines], name
    assert [step for step, _ in board["files"]["validation_miou"]] == [3, 4]


def test_a_notebook_shows_frames(home: Path, tmp_path: Path) -> None:
    """Executed by a kernel: galleries are HTML with their pictures, and plain text beside it."""
    with serving(home) as (url, _):
        chosen, dataset, pages, printed = read_by("notebook", tmp_path, url)[1:]
    for (shown,), pictures in ((chosen, 5), (dataset, 3), (pages, 2)):
        assert shown["text/plain"].startswith("<Gallery: ")
        assert shown["text/html"].count("src='data:image/jpeg;base64,") == pictures
        assert "<bdi>front_center</bdi>" in shown["text/html"]
    assert re.match(r"<Gallery: (\d+) of \1 frames: ", printed[0]["text"])
    assert (tmp_path / "frames.ipynb").stat().st_size < 500_000
