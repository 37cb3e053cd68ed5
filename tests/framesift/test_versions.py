"""Client and command line against servers of other versions, over HTTP."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import framesift
from framesift import InvalidQuestion, NotFound, NotSupported, WrongVersion
from tests.api.servers import several
from tests.framesift.other_versions import serving_as

pytestmark = pytest.mark.wide

MAJOR = version("framesift").partition(".")[0]
NEWER, OLDER, FOREIGN = f"{MAJOR}.999.0", f"{MAJOR}.0.9", f"{int(MAJOR) + 1}.0.0"

READING = [
    ["source", "list"],
    ["classes"],
    ["classes", "--by", "camera"],
    ["histogram", "car", "--zero", "car", "--bins", "5"],
    ["tags", "list"],
    ["sql", "select count(*) from metaocean", "--format", "table"],
    ["select", "--range", "car=10000:", "--order", "car desc"],
    ["select", "--range", "car=10000:", "--explain"],
    ["dataset", "list"],
    ["dataset", "show", "city"],
    ["gaps", "city", "--at-least", "30"],
    ["jobs", "list"],
    ["policy", "list"],
    ["user", "list"],
    ["audit"],
]
"""Commands whose words must be the same, whatever more a newer server says."""


@pytest.fixture
def city(home: Path) -> Path:
    """A home with a dataset."""
    split = ["--split", "train=0.5,validation=0.5"]
    ((status, _, errors),) = several(home, ["dataset", "create", "city", *split])
    assert status == 0, errors
    return home


def more(_path: str, document: Any) -> Any:
    """A document with a new field in it, and in each entry of its lists; a frame is its columns."""
    if not isinstance(document, dict):
        return document
    document_with_more = {"a_new_field": {"deep": [1]}, **document}
    for name, value in document.items():
        if isinstance(value, list) and name != "frames":
            document_with_more[name] = [
                {"a_new_field": 7, **one} if isinstance(one, dict) else one for one in value
            ]
        if name == "frames" and isinstance(value, list):
            document_with_more[name] = [{**one, "a_new_tag": 3} for one in value]
    return document_with_more


def test_a_newer_server_says_more(city: Path, tmp_path: Path) -> None:
    """Fields, tags of frames and kinds that this version does not know are passed over."""

    def edit(path: str, document: Any) -> Any:
        if path == "/v1/tags" and "tags" in document:
            document["tags"][0]["kind"] = "Elastic"
        return more(path, document)

    here = several(city, *READING)
    with serving_as(city, NEWER, edit) as url:
        there = several(tmp_path, *[["--server", url, *command] for command in READING])
        with framesift.connect(url) as client:
            chosen = client.select(car=(1, None))
            assert chosen[0]["a_new_tag"] == 3
            assert chosen.save("more")["a_new_field"] == {"deep": [1]}
            assert next(client.frames(car=(1, None)))["scene"]
            assert {tag["kind"] for tag in client.tags} >= {"Elastic", "Characteristics"}
            assert client.sources.get("a2d2").name == "a2d2"
            assert client.classes()[0]["a_new_field"] == 7
            assert len(client.sql("select fkey from metaocean fetch first 2 rows only")) == 2
            assert client.datasets.get("city").splits.keys() == {"train", "validation"}
            assert client.tags.add("mood", kind="Open")["kind"] == "Open"
            assert list(client.policies) == []
    for command, one, other in zip(READING, here, there, strict=True):
        expected = [str(field) for field in one]
        if command == ["tags", "list"]:
            assert "Elastic" in other[1]
            continue
        assert [str(field) for field in other] == expected, command


def test_a_job_in_a_state_that_is_not_known(city: Path) -> None:
    """It is waited for while it has no end, and is no success where it has one."""
    job: dict[str, Any] = {
        "name": "j",
        "kind": "dream",
        "error": "it woke up",
        "metrics": {},
        "finished": None,
    }
    states = [("queued", None), ("queued", None), ("lost", "2026-11-21T14:08:18Z")]

    def edit(path: str, document: Any) -> Any:
        if path == "/v1/jobs" and "jobs" in document:
            state, finished = states.pop(0)
            return {"jobs": [{**job, "state": state, "finished": finished}], "next": None}
        return document

    with serving_as(city, NEWER, edit) as url:
        jobs = [one for _ in range(3) for one in framesift.connect(url).jobs.list()]
    assert [one.finished for one in jobs] == [False, False, True]


def test_an_older_server_lacks_routes_and_fields(city: Path, tmp_path: Path) -> None:
    """What it lacks is said where it is asked for, with both versions; the rest works."""

    def edit(path: str, document: Any) -> Any:
        if path == "/v1/tags" and "tags" in document:
            return {**document, "tags": [{"tag": one["tag"]} for one in document["tags"]]}
        if path == "/v1/classes":
            return {key: value for key, value in document.items() if key != "frames"}
        return document

    gone = ["/v1/families", "/v1/policies"]
    both = f"the server is of version {OLDER}, this client of {version('framesift')}"
    with serving_as(city, OLDER, edit, gone) as url:
        with framesift.connect(url) as client:
            with pytest.raises(
                NotSupported, match=f"GET /v1/families: the server has no such route: {both}"
            ):
                list(client.tags.families())
            with pytest.raises(NotSupported, match="POST /v1/policies/due"):
                client.policies.start_due()
            with pytest.raises(NotSupported, match="PUT /v1/sources"):  # 405
                client.call("PUT", "/v1/sources")
            tag = next(iter(client.tags))
            with pytest.raises(NotSupported, match=f"answer has no 'kind': {both}"):
                tag["kind"]
            with pytest.raises(KeyError):
                tag["kind"]
            assert tag.get("kind") is None
            with pytest.raises(InvalidQuestion, match=f"colour: .*{both}"):
                client.call("POST", "/v1/tags", {"tag": "x", "colour": "red"})
            with pytest.raises(NotFound, match="no dataset named 'nope'"):
                client.datasets.get("nope")
            with pytest.raises(NotFound, match="no name with a slash"):
                client.sources.get("a/b")
            assert len(client.select(car=(1, None))) > 0
        commands = [
            ["tags", "families"], ["tags", "list"], ["classes", "--by", "camera"],
            ["policy", "list"], ["dataset", "list"],
        ]  # fmt: skip
        ended = several(tmp_path, *[["--server", url, *command] for command in commands])
    for (status, out, err), words in zip(
        ended[:4],
        ("no such route", "has no 'family'", "this version reads, in 'frames'", "no such route"),
        strict=True,
    ):
        assert (status, out) == (1, "")
        assert words in err
        assert both in " ".join(err.split())
        assert err.count("\n") == 1
    assert ended[4][0] == 0


def test_a_server_of_another_major_number_is_not_asked_twice(city: Path, tmp_path: Path) -> None:
    """Whatever is asked, also where the answer is a stream or an error."""
    with serving_as(city, FOREIGN) as url:
        with framesift.connect(url) as client:
            for ask in (
                client.classes,
                client.select,
                lambda: client.sql("select fkey from metaocean").to_arrow(),
                lambda: client.datasets.get("nope"),
                lambda: client.call("GET", "/v1/nope"),
            ):
                with pytest.raises(WrongVersion, match=f"install the framesift {FOREIGN[0]}"):
                    ask()
            with (
                pytest.raises(WrongVersion),
                client.sql("select fkey from metaocean").reader() as reader,
            ):
                reader.read_all()
        commands = [["classes"], ["sql", "select fkey from metaocean"], ["dataset", "create", "x"]]
        for status, out, err in several(tmp_path, *[["--server", url, *each] for each in commands]):
            assert (status, out, err.count("\n")) == (1, "", 1)
            assert f"a server of version {FOREIGN}, and this client is" in err
