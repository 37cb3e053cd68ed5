"""The endpoint for assistants, asked by the SDK's own client."""

import asyncio
import base64
import io
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import httpx2
import pytest
from fastapi import FastAPI, Request
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver.exceptions import ToolError
from PIL import Image

from api.http.middleware.authentication import Authentication
from api.http.middleware.request_context import RequestContext
from api.http.rules import READ_ALL_ROWS
from api.mcp.endpoint import _caller_of
from api.mcp.tools import Tools
from api.server.shared import Changes
from api.services.accounts.callers import Caller
from catalog.accounts import audit_log
from tests.api.servers import FRAMESIFT, environment, framesift, serving
from tests.pipeline.homes import FRAMES, REPOSITORY, open_home

pytestmark = pytest.mark.wide

TOOLS = {
    "describe_catalog", "sql", "select", "propose_selection", "class_statistics", "histogram",
    "describe_dataset", "gaps", "frame_picture",
}  # fmt: skip


def asked(url: str, work: Callable[[Client], Awaitable[Any]], token: str | None = None) -> Any:
    """What is done with a client of the endpoint."""

    async def run() -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport) as client:
                return await work(client)

    return asyncio.run(run())


def called(url: str, tool: str, token: str | None = None, **arguments: Any) -> Any:
    """A tool's answer as data; its error as a text."""

    async def work(client: Client) -> Any:
        result = await client.call_tool(tool, arguments)
        text = str(getattr(result.content[0], "text", ""))
        return text if result.is_error else json.loads(text)

    return asked(url, work, token)


@pytest.fixture(scope="module")
def open_server(shared_home: Path) -> Iterator[tuple[str, Path]]:
    """A server that asks nobody, and its home."""
    framesift(shared_home, "dataset", "create", "city", "--range", "car=1:")
    with serving(shared_home) as (url, _):
        yield url, shared_home


def test_every_tool_says_that_it_reads(open_server: tuple[str, Path]) -> None:
    """Each with a description and a schema of its arguments; the server says how to begin."""

    async def work(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.description
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert tool.input_schema["type"] == "object"
            assert "context" not in tool.input_schema["properties"]
        assert "describe_catalog" in (client.instructions or "")

    asked(open_server[0], work)


def test_an_assistant_finds_frames(open_server: tuple[str, Path]) -> None:
    """What there is, how many frames answer, which; the same in SQL; what they hold."""
    url, _ = open_server
    catalog = called(url, "describe_catalog")
    assert catalog["frames"] == FRAMES
    # The test of a proposal saves the other, if it came earlier.
    assert {"city@1"} <= set(catalog["datasets"]) <= {"city@1", "bikes@1"}
    assert {entry["tag"] for entry in catalog["classes"]} >= {"car", "bicycle"}
    assert sum(entry["frames"] for entry in catalog["cameras"]) == FRAMES
    question = {"ranges": [{"tag": "car", "lowest": 10_000}], "cameras": ["front_center"]}
    selection = called(url, "select", question=question, limit=3)
    assert selection["sentence"].startswith("front-center frames with at least 10,000 car pixels")
    assert all(frame["car"] >= 10_000 for frame in selection["frames"])
    assert len(selection["frames"]) == 3 < selection["count"]
    count = f"select count(*) as n from ({selection['sql'].rpartition('order by')[0]}) as f"
    assert called(url, "sql", statement=count)["rows"] == [[selection["count"]]]
    rows = called(url, "sql", statement="select fkey from metaocean", limit=2)
    assert (len(rows["rows"]), rows["truncated"]) == (2, True)
    report = called(url, "class_statistics", question=question, by="scene")
    assert report["frames"] == selection["count"] == sum(g["frames"] for g in report["groups"])
    counted = called(url, "histogram", tags=["car"], question=question, bins=4)
    assert sum(counted["counts"]) == selection["count"]
    axes: dict[str, Any] = {"edges": ["car=10000,50000"], "zero": ["bicycle"], "bins": 2}
    both = called(url, "histogram", tags=["car", "bicycle"], **axes, dataset="city", split="all")
    assert both["axes"][0]["edges"] == [10_000, 50_000]
    assert "zero" in {each["kind"] for each in both["axes"][1]["bins"]}
    assert 0 < sum(map(sum, both["counts"])) <= FRAMES
    assert called(url, "describe_dataset", name="city")["name"] == "city@1"
    assert called(url, "gaps", dataset="city", at_least=40)["gaps"]
    none = called(url, "select", question={"ranges": [{"tag": "car", "lowest": 9_000_000}]})
    assert none["count"] == 0
    assert "the most car in a frame" in none["why_empty"]


def test_a_proposal_creates_nothing(open_server: tuple[str, Path]) -> None:
    """Its link shows the frames, its command saves them; until then there is no dataset."""
    url, home = open_server
    question = {"condition": {"kind": "has", "tag": "bicycle"}, "order": ["bicycle desc"]}
    proposed = called(url, "propose_selection", question=question, name="bikes")
    assert proposed["saved"] is False
    assert "bikes" not in framesift(home, "dataset", "list").stdout
    assert len(httpx.get(proposed["link"]).json()["frames"]) == proposed["count"]
    run = subprocess.run(
        ["bash", "-c", proposed["command"].replace("framesift", str(FRAMESIFT), 1)],
        env=environment(home), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"dataset bikes version 1: {proposed['count']} frames" in run.stdout
    assert "match" in called(url, "propose_selection", question=question, name="a; rm -rf ~")


def test_pictures_are_small(open_server: tuple[str, Path]) -> None:
    """Image, label and overlay as images; a frame that is not there is said."""
    url, _ = open_server

    async def work(client: Client) -> None:
        answer = await client.call_tool("select", {"question": {}, "limit": 1})
        fkey = json.loads(answer.content[0].text)["frames"][0]["fkey"]  # type: ignore[union-attr]
        for kind, media in (("image", "jpeg"), ("label", "png"), ("overlay", "jpeg")):
            asked_for = {"fkey": fkey, "kind": kind, "width": 300}
            picture: Any = (await client.call_tool("frame_picture", asked_for)).content[0]
            assert picture.mime_type == f"image/{media}"
            drawn = Image.open(io.BytesIO(base64.b64decode(picture.data)))
            assert (drawn.format, drawn.size[0]) == (media.upper(), 300)
        cars = {"fkey": fkey, "kind": "overlay", "classes": ["cra"]}
        for wrong, message in (({"fkey": "none"}, "no frame has"), (cars, "unknown class")):
            refused = await client.call_tool("frame_picture", wrong)
            assert refused.is_error
            assert message in str(refused.content[0])

    asked(url, work)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("sql", {"statement": "select nope from metaocean"}, "SQL0206N"),
        ("sql", {"statement": "drop table metaocean"}, "SQL"),
        ("sql", {"statement": "select 1 from metaocean", "limit": 10_000_000}, "sql: limit: Input"),
        ("sql", {}, "sql: statement: Field required"),
        ("frame_picture", {"fkey": 1, "kind": "x"}, "kind: Input should be 'image', 'label' or"),
        ("select", {"question": {"ranges": [{"tag": "cra", "lowest": 1}]}}, "did you mean car"),
        ("select", {"question": {"colour": "red"}}, "select: question.colour: Extra inputs"),
        ("gaps", {"dataset": "nope"}, "no dataset named"),
        ("histogram", {"tags": ["car"], "dataset": "nope"}, "no dataset named"),
        ("class_statistics", {"question": {"limit": 3}}, "leave out its order, limit"),
    ],
)
def test_what_is_wrong_is_said(
    open_server: tuple[str, Path], tool: str, arguments: dict[str, Any], message: str
) -> None:
    """In the server's own words, as an answer that the assistant can mend its question by."""
    told = called(open_server[0], tool, **arguments)
    assert isinstance(told, str)
    assert message in told
    assert "pydantic" not in told


def test_only_json_is_read(open_server: tuple[str, Path]) -> None:
    """Another type, or none, is refused as every route refuses it."""
    url, _ = open_server
    asked_for = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    for kind, status in (
        ("application/json; charset=utf-8", 200), ("text/plain", 415), ("", 415),
        ("application/jsonx", 415),
    ):  # fmt: skip
        answer = httpx.post(f"{url}/mcp", content=asked_for, headers={"Content-Type": kind})
        assert answer.status_code == status, answer.text
        problem = answer.headers["content-type"] == "application/problem+json"
        assert problem == (status == 415)


def test_tokens_and_collections_hold_here_too(home: Path) -> None:
    """No token, no answer; a reader of one scene sees that scene, of datasets too."""
    everything = framesift(home, "select", "--format", "json").stdout
    scenes = sorted({frame["scene"] for frame in json.loads(everything)})
    framesift(home, "dataset", "create", "city")
    framesift(home, "dataset", "create", "other", "--scene", scenes[1])
    rule = f"filename like '%/{scenes[0]}/%'"
    framesift(home, "user", "add", "anna", "--role", "datauser", "--no-password")
    framesift(home, "user", "add", "all", "--role", "dataadmin", "--no-password")
    framesift(home, "collection", "add", "one", rule)
    framesift(home, "collection", "assign", "one", "anna")
    created = [
        framesift(home, "token", "create", "t", "--user", user, "--scope", "read", "--json")
        for user in ("anna", "all")
    ]
    anna, full = (json.loads(run.stdout)["token"] for run in created)
    with serving(home, authenticates=True) as (url, _):
        assert httpx.post(f"{url}/mcp", json={}).status_code == 401
        assert httpx.get(f"{url}/mcp").status_code == 401
        seen = called(url, "describe_catalog", anna)
        assert [scene["scene"] for scene in seen["scenes"]] == scenes[:1]
        assert seen["datasets"] == ["city@1"]
        frames = called(url, "select", anna, question={}, limit=100)["frames"]
        assert {frame["scene"] for frame in frames} == set(scenes[:1])
        assert seen["frames"] == len(frames) < FRAMES
        statement = "select distinct scene from metaocean_view where scene is not null"
        assert called(url, "sql", anna, statement=statement)["rows"] == [scenes[:1]]
        hidden = next(f["fkey"] for f in json.loads(everything) if f["scene"] == scenes[1])
        assert "no frame has" in called(url, "frame_picture", anna, fkey=hidden)
        for tool, arguments in (
            ("gaps", {"dataset": "NAME"}),
            ("describe_dataset", {"name": "NAME"}),
            ("histogram", {"tags": ["scene"], "dataset": "NAME"}),
            ("class_statistics", {"dataset": "NAME"}),
        ):
            of_city, of_other = (
                called(url, tool, anna, **json.loads(json.dumps(arguments).replace("NAME", name)))
                for name in ("city", "other")
            )
            assert of_city["frames"] == len(frames)
            assert not any(scene in json.dumps(of_city) for scene in scenes[1:])
            assert "no dataset named 'other'" in of_other
            assert "city" not in of_other
        assert called(url, "describe_catalog", full)["frames"] == FRAMES
        assert called(url, "describe_dataset", full, name="city")["frames"] == FRAMES
        figures = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {full}"}).text
        assert 'framesift_query_seconds_count{kind="assistant"}' in figures
        noted = json.loads(framesift(home, "audit", "--json").stdout)
        assert "401" in {entry["outcome"] for entry in noted}


def test_a_refused_tool_is_in_the_audit_log(home: Path) -> None:
    """As a refused request is: who asked, and for which tool.

    Today's tools refuse nobody whom the gate lets in, so a route that does is asked for as they do.
    """
    workspace = open_home(home)
    app = FastAPI()
    app.state.workspace = workspace
    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": [],
        "client": ("127.0.0.1", 1), "server": ("localhost", 80), "app": app,
    }  # fmt: skip
    request = RequestContext(scope)
    request.caller = Caller("anna", frozenset({"datauser"}), "read", logged_in=False)
    request.who = "anna"
    scope["state"] = {"context": request, "authentication": Authentication(app, True, Changes())}
    context: Any = SimpleNamespace(
        request_context=SimpleNamespace(request=Request(scope), params={"name": "sources"})
    )
    with pytest.raises(ToolError, match="sees only rows of collections"):
        asyncio.run(Tools(_caller_of)._answered(context, lambda caller: caller.need(READ_ALL_ROWS)))
    (entry,) = audit_log.entries(workspace.records)
    fields = (entry.who, entry.what, entry.target, entry.outcome, entry.address)
    assert fields == ("anna", "tool sources", "/mcp", "403", "127.0.0.1")


def test_it_can_be_switched_off(home: Path) -> None:
    """Then there is nothing; elsewhere the SDK is not imported before somebody asks."""
    with serving(home, variables={"FRAMESIFT_MCP": "false"}) as (url, _):
        assert httpx.post(f"{url}/mcp", json={}).status_code == 404
    code = "import sys, api.app; print('mcp' in sys.modules, 'mcp_types' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "False"]


def test_over_standard_input_and_output(home: Path) -> None:
    """A program of this machine starts `framesift mcp` and asks the home."""

    async def work() -> Any:
        started = StdioServerParameters(command=str(FRAMESIFT), args=["mcp"], env=environment(home))
        async with Client(started) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            result = await client.call_tool("select", {"question": {}})
            return json.loads(str(getattr(result.content[0], "text", "")))

    answers = asyncio.run(work())
    assert answers["count"] == FRAMES
