"""The client package: a server's frames from another program."""

import inspect
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import pytest

import framesift
from framesift import FramesiftServerError, InvalidQuestion
from tests.pipeline.homes import FRAMES, REPOSITORY


def test_the_public_names_are_these() -> None:
    """What other programs may rely on; a change here is a change of the interface."""
    assert framesift.__all__ == [
        "AlreadyExists", "BadFile", "Client", "Dataset", "Frame", "FramesiftServerError",
        "FramesiftWarning", "Gallery", "InvalidQuestion", "Job", "JobFailed", "JobNotDone",
        "MissingPackage", "NoAnswer", "NotAllowed", "NotAuthenticated", "NotFound", "NotSupported",
        "Picture",
        "Policy", "Selection", "ServerFailed", "SqlError", "SqlResult", "Throttled", "UnknownName",
        "WrongVersion", "connect", "demand", "log_in",
    ]  # fmt: skip
    public = {
        name: [n for n, _ in inspect.getmembers(getattr(framesift, name)) if n[0] != "_"]
        for name in ("Client", "Selection", "Dataset", "Job", "Frame", "Policy", "SqlResult")
    }
    of_mapping = {"document", "get", "items", "keys", "values"}
    assert public["Client"] == [
        "ask", "call", "classes", "classes_by", "close", "correlation", "entries", "facets",
        "frame", "frames", "histogram", "info", "me", "prediction", "select", "set_own_password",
        "sql",
    ]  # fmt: skip
    assert public["Selection"] == ["classes", "of", "save", "show", "to_arrow", "to_pandas"]
    assert [name for name in vars(framesift.Gallery) if name[0] != "_"] == ["html"]
    assert sorted(set(public["Dataset"]) - of_mapping) == [
        "classes", "describe", "diff", "divide", "export", "exported", "extend", "frame_count",
        "frames",
        "gaps", "id", "name", "owner", "rebuild", "reduce", "remove", "rename", "run", "show",
        "splits",
        "stage", "to_arrow", "to_pandas", "train", "validate", "version",
    ]  # fmt: skip
    assert sorted(set(public["Job"]) - of_mapping) == [
        "cancel", "changes", "file", "finished", "follow_logs", "log_chunks", "log_sizes", "logs",
        "metrics", "name", "refresh", "remove", "report", "result", "resume", "state", "timeline",
        "validate", "wait",
    ]  # fmt: skip
    assert sorted(set(public["Frame"]) - of_mapping) == [
        "details", "fkey", "image", "label", "overlay", "prediction",
    ]  # fmt: skip
    assert sorted(set(public["Policy"]) - of_mapping) == ["change", "name", "remove", "run", "runs"]
    assert public["SqlResult"] == ["reader", "rows", "to_arrow", "to_pandas"]
    assert list(inspect.signature(framesift.connect).parameters) == ["url", "token", "ca_bundle"]
    assert list(inspect.signature(framesift.Client.select).parameters)[1:] == [
        "where", "sql", "camera", "scene", "has", "without", "share", "time", "condition", "order",
        "limit", "sample", "seed", "model", "at", "ranges",
    ]  # fmt: skip


def test_it_imports_nothing_heavy() -> None:
    """A program that only asks questions pays for httpx and nothing else."""
    code = "import sys, framesift; framesift.connect; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "httpx" in loaded
    for heavy in (
        "duckdb", "pyarrow", "sqlalchemy", "fastapi", "pydantic", "numpy", "pandas",
        "catalog", "query", "ingest", "pipeline", "api", "PIL",
    ):  # fmt: skip
        assert heavy not in loaded


def test_ranges_camera_and_where_choose(client: framesift.Client) -> None:
    """Every condition holds for every frame; both ends of a range count."""
    chosen = client.select(
        car=(10_000, 40_000), bicycle=(None, 100_000), camera="front_center", where="car > 10001"
    )
    assert 0 < len(chosen) < FRAMES
    for frame in chosen:
        assert 10_001 < frame["car"] <= 40_000
        assert frame["camera"] == "front_center"
    assert chosen.snapshot > 0
    assert [frame["fkey"] for frame in chosen] == [frame["fkey"] for frame in chosen.frames]
    exact = client.select(car=chosen.frames[0]["car"], camera=["front_center", "front_left"])
    assert chosen.frames[0]["fkey"] in [frame["fkey"] for frame in exact]


def test_conditions_choose_and_are_explained(client: framesift.Client) -> None:
    """Classes there and not there, shares, times and a tree; the answer says what was asked."""
    chosen = client.select(
        car=(1, None),
        has=("sky", "car"),
        without="rain_dirt",
        share={"car": (0.001, None)},
        time=("2026-03", "2026-10"),
        condition={"kind": "tag", "tag": "camera", "op": "starts_with", "value": "front"},
        order="car desc",
    )
    assert 0 < len(chosen) < FRAMES
    for frame in chosen:
        assert frame["car"] >= 0.001 * 1920 * 1208
        assert (frame["sky"] > 0, frame["rain_dirt"]) == (True, 0)
        assert frame["camera"].startswith("front")
        assert "202603" <= frame["scene"] < "202611"
    assert chosen.sentence == (
        "frames with at least one car pixel, at least one sky pixel, at least one car pixel and "
        "car on at least 0.1% of the pixels, without rain dirt, recorded from 2026-03 up to and "
        "including 2026-10, whose camera starts with 'front', those with the most car pixels "
        f"first, as of snapshot {chosen.snapshot}"
    )
    assert chosen.sql.startswith("select platform, datasource, filename, fkey\nfrom metaocean_view")
    assert chosen.note == ""
    assert "7 are drawn at random" in client.select(sample=7).note


def test_order_limit_sample_and_seed(client: framesift.Client) -> None:
    """Falling order, a limit, and a sample that its seed decides."""
    cars = [frame["car"] for frame in client.select(order="car desc", limit=5)]
    assert cars == sorted(cars, reverse=True)
    assert len(cars) == 5
    samples = [[f["fkey"] for f in client.select(sample=6, seed=seed)] for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert len(client.select()) == FRAMES
    scene = client.select().frames[0]["scene"]
    assert {frame["scene"] for frame in client.select(scene=scene)} == {scene}


def test_a_selection_is_saved_as_a_dataset(client: framesift.Client) -> None:
    """The dataset holds the frames that were seen, divided as asked."""
    chosen = client.select(car=(1, None))
    saved = chosen.save("cars", split="train=0.75,validation=0.25", split_by="frame", seed=3)
    assert (saved["name"], saved["version"], saved["frames"]) == ("cars", 1, len(chosen))
    assert sum(saved["splits"].values()) == len(chosen)
    assert Path(saved["manifest"], "manifest.json").is_file()
    again = chosen.save("cars", split="train=0.75,validation=0.25", split_by="frame", seed=3)
    assert again["id"] == saved["id"]
    sampled = client.select(sample=2, seed=7)
    assert sampled.save("two")["seed"] == 7


def test_what_a_question_means(client: framesift.Client) -> None:
    """It is not asked; an answer without frames says why."""
    meaning = client.selections.describe({"ranges": [{"tag": "car", "lowest": 9_000_000}]})
    assert meaning["sentence"].startswith("frames with at least 9,000,000 car pixels")
    chosen = client.ask(meaning["question"])
    assert (len(chosen), chosen.snapshot) == (0, meaning["snapshot"])
    assert chosen.why_empty.startswith("there are no frames with at least 9,000,000 car pixels")
    assert client.select(limit=1).why_empty == ""


def test_a_selection_as_a_table(client: framesift.Client) -> None:
    """One row per frame, class tags as numbers."""
    chosen = client.select(car=(1, None))
    table = chosen.to_arrow()
    assert table.num_rows == len(chosen)
    assert table["car"].to_pylist() == [frame["car"] for frame in chosen]
    none = client.select(car=(9_000_000, None))
    assert none.to_arrow().schema == table.schema
    frame = none.to_pandas()
    assert (len(frame), list(frame.columns)) == (0, table.column_names)
    assert frame.dtypes.equals(chosen.to_pandas().dtypes)


def test_numbers_of_numpy_and_columns_of_pandas_are_taken(client: Any) -> None:
    """Wherever a request has a value: ranges, shares, conditions, parameters, marks, statistics."""
    plain = client.select(car=(1, 50_000), limit=5, share={"sky": (0.01, None)})
    asked = client.select(
        car=(np.int64(1), np.uint16(50_000)),
        limit=np.int32(5),
        share={"sky": (np.float64(0.01), None)},
    )
    assert [frame.fkey for frame in asked] == [frame.fkey for frame in plain]
    assert len(plain) > 1
    numbers = pd.Series([frame["frame_number"] for frame in plain])
    some = {"kind": "tag", "tag": "frame_number", "op": "in", "value": numbers}
    cameras = np.array(["front_center", "front_left"])
    exact = client.select(car=np.int64(plain.frames[0]["car"]), at=np.int64(plain.snapshot))
    assert plain.frames[0].fkey in [frame.fkey for frame in exact]
    both = client.select(car=np.array([1, 50_000]), condition=some, camera=cameras)
    assert {frame["frame_number"] for frame in both} <= set(numbers)
    assert len(list(client.frames(question={"ranges": [], "condition": some}))) >= len(numbers)
    edges = {"car": np.array([0, 1_000, 50_000])}
    assert client.histogram("car", edges=edges, bins=np.int64(4))["axes"]
    when = pd.Timestamp("2001-01-01")
    late = {"kind": "tag", "tag": "mtime", "op": ">", "value": when}
    assert len(client.select(condition=late)) == FRAMES
    late["value"] = when.to_datetime64()
    assert len(client.select(condition=late)) == FRAMES
    with pytest.raises(InvalidQuestion, match="is a set: expected a text, a number"):
        client.select(condition={**late, "value": {1}})
    with pytest.raises(InvalidQuestion, match="not finite"):
        client.select(car=(np.nan, None))


def test_classes(client: framesift.Client) -> None:
    """Frames and share of every class."""
    assert {entry["tag"] for entry in client.classes()} >= {"car", "bicycle", "pedestrian"}


@pytest.mark.parametrize(
    ("question", "status", "message"),
    [
        ({"cra": (1, None)}, 400, "unknown class 'cra': did you mean car"),
        ({"camera": "nose"}, 400, "unknown camera 'nose'"),
        ({"where": "car >"}, 400, "SQL0104N"),
        ({"car": (2, 1)}, 422, "lowest 2 is above highest 1"),
        ({"car": (None, None)}, 422, "give a lowest or a highest"),
        ({"limit": 0}, 422, "limit"),
    ],
)
def test_errors_are_exceptions_with_a_status(
    client: framesift.Client, question: dict[str, object], status: int, message: str
) -> None:
    """The server's own words, and its status for programs."""
    with pytest.raises(FramesiftServerError, match=message) as caught:
        client.select(**question)  # type: ignore[arg-type]
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"car": (1,)}, r"car=\(1,\): expected \(lowest, highest\), with None for an open end"),
        ({"car": "12"}, "car='12': expected"),
        ({"car": True}, "car=True: expected"),
        ({"share": {"car": 0.5}}, "share of car=0.5: expected"),
        ({"time": "2018"}, r"time='2018': expected \(first, last\)"),
        ({"camera": []}, r"camera=\[\]: an empty list names none; name one, or leave it out"),
        ({"scene": ()}, r"scene=\(\): an empty list"),
    ],
)
def test_values_of_another_form_are_refused(
    client: framesift.Client, question: dict[str, Any], message: str
) -> None:
    """By one kind of exception, however they are asked for; no list of names is not all names."""
    for ask in (client.select, lambda **query: next(client.frames(**query))):
        with pytest.raises(InvalidQuestion, match=message):
            ask(**question)
    assert len(client.select(camera=None, scene=None, has=[], order=[])) == FRAMES
    with pytest.raises(InvalidQuestion, match="classes"):
        client.select(limit=1)[0].overlay(classes=[])


def test_a_closed_client_says_so(server: str) -> None:
    """Whole answers and those that stream; it is no matter of the server."""
    with framesift.connect(server) as client:
        statement = client.sql("select fkey from metaocean")
    for ask in (client.classes, lambda: statement.rows, lambda: statement.reader().__enter__()):
        with pytest.raises(FramesiftServerError, match="this client is closed") as caught:
            ask()
        assert caught.value.status is None


def test_a_bad_name_is_refused(client: framesift.Client) -> None:
    """Saving raises as selecting does."""
    with pytest.raises(FramesiftServerError, match="dataset name 'a/b'"):
        client.select().save("a/b")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://nowhere.invalid"])
def test_no_server_is_one_exception(url: str) -> None:
    """Nothing listens there, no such host: no status, and what to look at."""
    with pytest.raises(FramesiftServerError, match="no answer") as caught:
        framesift.connect(url).select()
    assert caught.value.status is None


def test_a_url_that_cannot_be_one_is_the_same_exception() -> None:
    """Httpx's own error does not come through."""
    with pytest.raises(FramesiftServerError, match="expected one such as"):
        framesift.connect("http://127.0.0.1:port")


class _Other(BaseHTTPRequestHandler):
    answers = iter([(200, b"<html>"), (200, b"[]"), (502, b"Bad Gateway"), (404, b"{}")])

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = next(self.answers)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_another_programs_server_is_told_from_ours() -> None:
    """HTML, a list, a proxy's error: an exception with the status, never a KeyError."""
    other = HTTPServer(("127.0.0.1", 0), _Other)
    thread = threading.Thread(target=other.serve_forever, daemon=True)
    thread.start()
    with framesift.connect(f"http://127.0.0.1:{other.server_port}") as client:
        for status in (200, 200, 502, 404):
            with pytest.raises(FramesiftServerError, match="no answer of a Framesift") as caught:
                client.select()
            assert caught.value.status == status
    other.shutdown()
    other.server_close()


def test_a_statement_explained(client: framesift.Client) -> None:
    """What would run and be read; the statement itself may be refused."""
    explanation = client.statements.explain("select sum(value) from t_car")
    assert "class_pixels" in [table["name"] for table in explanation["tables"]]
    assert explanation["snapshot"] == client.select(limit=1).snapshot
    with pytest.raises(FramesiftServerError, match="SQL0204N"):
        client.statements.explain("select a from nowhere")
