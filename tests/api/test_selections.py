"""Questions by command, server and dataset: their answers, their SQL and their sentence."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from catalog.records.datasets import recorded_dataset
from query.frames.select_frames import select_frames
from query.question.operators import OPERATORS
from query.question.question import Question
from tests.api.servers import framesift, several
from tests.pipeline.homes import FRAMES, open_home

CONDITION = {
    "kind": "any",
    "of": [
        {"kind": "share", "tag": "car", "lowest": 0.02},
        {"kind": "tag", "tag": "scene", "op": "starts_with", "value": "202606"},
    ],
}
QUESTION = {"ranges": [{"tag": "car", "lowest": 1}], "condition": CONDITION, "order": ["car desc"]}
OPTIONS = ["--has", "car", "--without", "rain_dirt", "--share", "car=0.001:0.2",
           "--tag", "frame_number >= 100", "--tag", "camera in front_center,front_left",
           "--time", "2026-03:2026-10", "--order", "car desc", "--limit", "9"]  # fmt: skip


def fkeys(body: dict[str, Any]) -> list[str]:
    """The frames of an answer."""
    return [frame["fkey"] for frame in body["frames"]]


@pytest.mark.wide
def test_options_question_and_sql_are_one(catalogued: Path, tmp_path: Path) -> None:
    """The same frames by options, by the question that they become, and by the SQL shown."""
    (_, chosen, err), (_, explained, _), (_, as_json, _) = several(
        catalogued,
        ["select", *OPTIONS, "--json"],
        ["select", *OPTIONS, "--explain"],
        ["select", *OPTIONS, "--show-sql", "--json"],
    )
    assert err == ""
    answer, told = json.loads(chosen), json.loads(as_json)
    assert 0 < answer["count"] <= 9
    assert told == {key: answer[key] for key in ("question", "snapshot", "sentence", "sql", "note")}
    assert explained == f"{told['sentence']}\n\n{told['sql']}\n"
    file = tmp_path / "question.json"
    file.write_text(json.dumps(answer["question"]))
    (_, again, _), (_, rows, _) = several(
        catalogued,
        ["select", "--question", str(file), "--json"],
        ["sql", told["sql"], "--json"],
    )
    assert fkeys(json.loads(again)) == fkeys(answer)
    assert [row["fkey"] for row in json.loads(rows)] == fkeys(answer)
    assert json.loads(again)["question"] == answer["question"]


def test_options_add_to_a_question(catalogued: Path, tmp_path: Path) -> None:
    """Every condition of both holds; order, limit, sample and seed are the options'."""
    file = tmp_path / "question.json"
    base = QUESTION | {"where": "car > 5 -- some", "cameras": ["front_center"], "limit": 3}
    file.write_text(json.dumps(base))
    more = ["--range", "sky=1:", "--has", "car", "--where", "bicycle >= 0 -- any",
            "--camera", "front_center", "--camera", "front_left", "--limit", "5"]  # fmt: skip
    run = framesift(catalogued, "select", "--question", "-", *more, "--json",
                    stdin=json.dumps(base))  # fmt: skip
    assert run.returncode == 0, run.stderr
    question = json.loads(run.stdout)["question"]
    assert question["ranges"] == [{"tag": "car", "lowest": 1}, {"tag": "sky", "lowest": 1}]
    assert question["where"] == "(car > 5 -- some\n) and (bicycle >= 0 -- any\n)"
    assert question["cameras"] == ["front_center"]
    assert question["condition"] == {"kind": "all", "of": [
        CONDITION, {"kind": "has", "tag": "car"},
        {"kind": "camera", "names": ["front_center", "front_left"]}]}  # fmt: skip
    assert (question["limit"], question["order"]) == (5, ["car desc"])
    frames = json.loads(run.stdout)["frames"]
    assert {frame["camera"] for frame in frames} == {"front_center"}


REFUSED: list[tuple[list[str], tuple[str, ...]]] = [
    (["--has", "cra"], ("unknown class 'cra': did you mean car",)),
    (["--without", "front"], ("unknown class 'front'",)),
    (["--share", "car=5:20"], ("'car=5:20'", "expected 1 or less")),
    (["--tag", "frame_number like 3"], ("frame_number is a number: 'like' takes a text",)),
    (["--tag", "frame_nr=3"], ("unknown tag 'frame_nr': did you mean frame_number",)),
    (["--tag", "frame_number=x"], ("got 'x', expected a number",)),
    (["--tag", "lots"], ("tag 'lots': expected TAG, one of =",)),
    (["--time", "August"], ("time 'August': expected FROM:TO",)),
    (["--explain", "--save", "x"], ("--explain asks nothing",)),
    (["--question", "/no/such/file"], ("/no/such/file: cannot be read: No such file",)),
    (["--question", str(Path(__file__))], ("is no question: ", "JSON")),
]


def test_what_cannot_be_asked_is_one_line(home: Path) -> None:
    """What was given, what is expected, the nearest name."""
    ended = several(home, *(["select", *arguments] for arguments, _ in REFUSED))
    for (_, parts), (status, out, err) in zip(REFUSED, ended, strict=True):
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert err.startswith("error: ")
        assert all(words in err for words in parts), err


def test_no_frames_is_an_answer_with_a_reason(catalogued: Path) -> None:
    """The answer stays what it is; on stderr stands what to change."""
    command = ["select", "--range", "car=9000000:", "--has", "sky"]
    (status, out, err), (_, table, _) = several(catalogued, [*command, "--json"], command)
    assert (status, json.loads(out)["count"]) == (0, 0)
    assert err.startswith("no frames: there are no frames with at least 9,000,000 car pixels: the ")
    assert "0 frames, snapshot" in table


@pytest.mark.wide
def test_a_datasets_question_replays(home: Path) -> None:
    """The question that a dataset keeps names its snapshot: the same frames after a change."""
    create = ["dataset", "create", "cars", *OPTIONS, "--seed", "4", "--split", "a=0.5,b=0.5",
              "--split-by", "frame", "--json"]  # fmt: skip
    (status, dataset, err), (_, chosen, _) = several(home, create, ["select", *OPTIONS, "--json"])
    assert status == 0, err
    workspace = open_home(home)
    with workspace.whole_catalog.writing("changed by a test") as connection:
        connection.execute("UPDATE class_pixels SET car = 0")
    stored = recorded_dataset(workspace.records, "cars").question
    question = Question.of_dataset(stored)
    assert question.snapshot == json.loads(dataset)["snapshot"]
    assert question.seed == 4
    assert select_frames(workspace.catalog, question).frames["fkey"].to_pylist() == fkeys(
        json.loads(chosen)
    )
    assert (
        len(select_frames(workspace.catalog, question.model_copy(update={"snapshot": None}))) == 0
    )
    workspace.close()


def test_the_server_answers_and_describes(server: str) -> None:
    """The question as understood, its SQL and sentence with the frames, or without them."""
    answer = httpx.post(f"{server}/v1/selections", json=QUESTION).json()
    assert 0 < answer["count"] == len(answer["frames"]) < FRAMES
    assert answer["question"] == QUESTION | {"snapshot": answer["snapshot"]}
    told = httpx.post(f"{server}/v1/selections/describe", json=answer["question"]).json()
    assert told == {key: answer[key] for key in ("question", "snapshot", "sentence", "sql", "note")}
    assert told["sentence"] == (
        "frames with at least one car pixel, either with car on at least 2% of the pixels or "
        "whose scene starts with '202606', those with the most car pixels first, "
        f"as of snapshot {answer['snapshot']}"
    )
    rows = httpx.post(
        f"{server}/db2whrest/v1/sql_query", content=told["sql"].encode(),
        headers={"Accept": "application/json"},
    ).json()  # fmt: skip
    assert [row["fkey"] for row in rows] == fkeys(answer)


def test_the_server_tells_what_can_be_asked(server: str) -> None:
    """The JSON schema and the table of operators; both without a question."""
    schema = httpx.get(f"{server}/v1/selections/schema").json()
    assert {"ranges", "where", "sql", "cameras", "scenes", "order", "limit", "sample", "seed",
            "condition", "snapshot", "model"} == set(schema["properties"])  # fmt: skip
    assert schema["$defs"]["TagIs"]["properties"]["op"]["enum"] == list(OPERATORS)
    listed = httpx.get(f"{server}/v1/selections/operators").json()
    assert [row["name"] for row in listed["operators"]] == list(OPERATORS)
    assert all({"types", "shape", "sql", "words"} < set(row) for row in listed["operators"])
    assert listed["types"]["boolean"] == ["BOOLEAN"]
    paths = httpx.get(f"{server}/openapi.json").json()["paths"]
    assert "/v1/selections/describe" in paths


@pytest.mark.parametrize(
    ("body", "at", "status", "words"),
    [
        ({"condition": {"kind": "has", "tag": "cra"}}, None, 400, "did you mean car"),
        ({"condition": {"kind": "nearby"}}, None, 422, "condition"),
        ({"snapshot": 2}, 1, 400, "the question is asked of snapshot 2 by itself"),
        ({"snapshot": 10**6}, None, 404, "no snapshot"),
        ({"condition": {"kind": "tag", "tag": "scene", "op": ">", "value": "2"}}, None, 400,
         "scene is a text: '>' takes a number or time; a text takes =, !="),
    ],
)  # fmt: skip
def test_the_servers_errors(
    server: str, body: dict[str, Any], at: int | None, status: int, words: str
) -> None:
    """The same of both paths, with its status."""
    for path in ("/v1/selections", "/v1/selections/describe"):
        answer = httpx.post(f"{server}{path}", json=body, params={} if at is None else {"at": at})
        assert answer.status_code == status, answer.text
        assert words in answer.json()["detail"]


def test_a_body_without_end_is_refused(server: str) -> None:
    """Forty thousand groups inside each other, just below 1 MiB: an error, and the server lives."""
    depth = 40_000
    body = '{"condition":' + '{"kind":"all","of":[' * depth + "]}" * depth + "}"
    answer = httpx.post(
        f"{server}/v1/selections", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    assert httpx.get(f"{server}/healthz").status_code == 200
