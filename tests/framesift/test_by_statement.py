"""Frames that a statement chooses, and other answers a client gives about itself."""

import json
from pathlib import Path
from typing import Any

import pytest

import framesift
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from framesift import InvalidQuestion, SqlError
from tests.api.servers import framesift as command
from tests.api.servers import serving
from tests.pipeline.homes import FRAMES

_CARS = "select fkey from t_car where int(value) > 10000"


def _fkeys(frames: Any) -> list[str]:
    return [frame["fkey"] for frame in frames]


@pytest.mark.parametrize(
    "statement",
    [
        _CARS,
        f"{_CARS};\n ; ",
        f"{_CARS} -- as of old",
        "select * from metaocean_view where car > 10000",
        "with many as (select fkey, value from t_car) select fkey from many where value > 10000",
        f"{_CARS} and int(value) < 20000 union {_CARS} and int(value) >= 20000",
        "SELECT fkey FROM metaocean_view WHERE car > 10000 WITH UR",
    ],
)
def test_a_statement_chooses_frames(client: framesift.Client, statement: str) -> None:
    """As many columns as it likes, one of which is fkey; its own end does not end the question."""
    expected = _fkeys(client.select(where="car > 10000"))
    assert 0 < len(expected) < FRAMES
    assert _fkeys(client.select(sql=statement)) == expected
    assert _fkeys(client.frames(sql=statement)) == expected


def test_a_statement_beside_other_conditions(client: framesift.Client) -> None:
    """All of them hold; what is kept as a dataset's question finds the same frames again."""
    others: dict[str, Any] = {"car": (1, 40_000), "camera": "front_center"}
    expected = _fkeys(client.select(where="car > 10000", **others))
    everything = _fkeys(client.select(sql="select fkey from metaocean", **others))
    chosen = client.select(sql=_CARS, where="1 = 2 or camera <> 'x' -- any", **others)
    assert _fkeys(chosen) == expected
    assert 0 < len(expected) < len(everything)
    assert _fkeys(client.ask(chosen.question)) == expected
    dataset = client.datasets.create("by-statement", sql=_CARS, **others)
    assert sorted(_fkeys(dataset.frames())) == sorted(expected)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("", "sql='': expected a SELECT with a column fkey or filename"),
        (" ; ", "sql=' ; ': expected a SELECT"),
        ((1, 2), r'for a tag of that name: condition=\{"kind": "pixels", "tag": "sql"'),
        ("select path from metaocean", "statement's columns are path: expected fkey, or filename"),
        ("select fkey from nowhere", "SQL0204N.*NOWHERE"),
        (f"{_CARS}; select fkey from t_car", "SQL0142N.*several statements"),
        (f"{_CARS}) or (1 = 1", "SQL0104N.*unexpected token"),
        ("delete from t_car", "SQL0142N.*DELETE statement"),
    ],
)
def test_what_is_no_such_statement(client: framesift.Client, statement: Any, message: str) -> None:
    """Refused, and never every frame: an fkey that it lacks is not that of the frame around it."""
    with pytest.raises(InvalidQuestion, match=message):
        client.select(sql=statement)
    assert issubclass(SqlError, InvalidQuestion)


def test_published_statements_make_datasets(client: framesift.Client) -> None:
    """As they stand; a part of a question that is beside it is told where it goes."""
    statement = (
        "select platform,datasource,filename from metaocean,t_front where t_front.fkey="
        "metaocean.fkey and int(t_front.value)=1 with ur;"
    )
    expected = _fkeys(client.select(where="front = 1"))
    dataset = client.datasets.create("published", sql=statement)
    assert sorted(_fkeys(dataset.frames())) == sorted(expected)
    assert dataset["question"]["sql"] == statement
    for path, body in (
        ("/v1/datasets", {"name": "top", "sql": statement}),
        ("/v1/jobs", {"kind": "train", "sql": statement}),
        ("/v1/statistics/facets", {"sql": statement}),
    ):
        with pytest.raises(InvalidQuestion, match=r'write \{"question": \{"sql": \.\.\.\}\}'):
            client.call("POST", path, body=body)


@pytest.mark.wide
def test_a_tag_of_that_name_is_reached(home: Path) -> None:
    """As data, since the keyword is taken."""
    with serving(home) as (url, _), framesift.connect(url) as client:
        fkeys = _fkeys(client.select(limit=2))
        table = home.parent / "tags.csv"
        table.write_text("fkey,sql\n" + "".join(f"{fkey},{7}\n" for fkey in fkeys))
        client.tags.import_values(table, "mine", key="fkey", type=["sql=bigint"])
        condition = {"kind": "pixels", "tag": "sql", "lowest": 7}
        assert _fkeys(client.select(condition=condition)) == fkeys
        assert len(client.select(sql="select fkey from t_sql")) == 2


@pytest.mark.wide
def test_a_limited_user_s_statement_and_server(home: Path) -> None:
    """Chooses among the rows that are seen; the machine's folders are not shown."""
    records = RecordStore(home / "records" / "records.sqlite")
    scene = "20260311_130314"
    otto, root = (users.add(records, *who, None) for who in (("otto", ["datauser"]),
                                                             ("root", ["admin"])))  # fmt: skip
    row_collections.add(records, "one", f"filename like '%/{scene}/%'")
    row_collections.add(records, "classes", "filename like '%/class_list.json'")
    for name in ("one", "classes"):
        row_collections.assign(records, name, "otto")
    with serving(home, authenticates=True) as (url, _):
        with framesift.connect(url, tokens.log_in(records, otto)) as limited:
            seen = limited.select(sql="select fkey from metaocean")
            assert {frame["scene"] for frame in seen} == {scene}
            assert len(limited.select(sql="select fkey from t_car")) == len(seen)
            info = limited.call("GET", "/v1/info")
            assert (info["home"], info["cache"], info["frames"]) == ("", "", len(seen))
        with framesift.connect(url, tokens.log_in(records, root)) as everything:
            assert len(everything.select(sql="select fkey from metaocean")) == FRAMES
            assert everything.call("GET", "/v1/info")["home"] == str(home)


@pytest.mark.wide
def test_the_command_line_takes_one_too(catalogued: Path, server: str, tmp_path: Path) -> None:
    """On a home and of a server, beside a WHERE body; in a file with a byte order mark, too."""
    arguments = [
        "select",
        "--sql",
        f"{_CARS};",
        "--where",
        "camera='front_center'",
        "--format",
        "json",
    ]
    here = command(catalogued, *arguments)
    there = command(catalogued, "--server", server, *arguments)
    assert (here.returncode, here.stderr, there.stderr) == (0, "", "")
    assert here.stdout == there.stdout
    assert 0 < here.stdout.count('"fkey"') < FRAMES
    file = tmp_path / "question.json"
    file.write_text(json.dumps({"sql": _CARS}), encoding="utf-8-sig")
    of_file = command(catalogued, "select", "--question", str(file), *arguments[3:])
    assert (of_file.returncode, of_file.stdout) == (0, here.stdout)
    twice = command(catalogued, "select", "--question", str(file), *arguments[1:])
    assert twice.stderr.startswith("error: --sql: the file's question has a statement, too")
    wrong = command(catalogued, "select", "--sql", " ;")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("error: sql=' ;': expected a SELECT with a column fkey")


def test_what_a_client_has_says_what_it_is(client: framesift.Client, server: str) -> None:
    """In one line: no list of all frames, no address in memory."""
    chosen = client.select(camera="front_center", limit=3)
    assert (
        repr(chosen)
        == str(chosen)
        == (f"<Selection: 3 frames, snapshot {chosen.snapshot}: {chosen.sentence}>")
    )
    for name in ("datasets", "jobs", "models", "policies", "sources", "tags"):
        assert repr(getattr(client, name)) == f"<{name.capitalize()} of {server}>"


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8008", "localhost:8008", "foo", "", "gopher://x", "http://", "/v1"]
)
def test_a_url_without_its_scheme_is_refused_at_once(url: str) -> None:
    """Before anything is asked; the expected form is named."""
    for connect in (framesift.connect, lambda url: framesift.log_in(url, "anna", "x")):
        with pytest.raises(framesift.FramesiftServerError, match="expected one such as http://"):
            connect(url)
