"""What holds for all of /v1: requests that are repeated, states that are named, compression."""

import gzip
import json
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import zstandard
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from api.app import create_app
from api.http.middleware.compression import Compression
from api.services.accounts.callers import Caller
from api.settings import Settings
from catalog.accounts import tokens, users
from catalog.records import idempotency_keys
from catalog.records.idempotency_keys import KeyedRequest
from catalog.records.store import RecordStore
from catalog.records.tables import IdempotencyKey
from catalog.values import now

ANNA, BOB = "anna", "bob"


class Served:
    """An application over a copy of the sample's home, with two admins."""

    def __init__(
        self, client: TestClient, app: FastAPI, records: RecordStore, secrets: dict[str, str]
    ) -> None:
        self.client, self.app, self.records, self.secrets = client, app, records, secrets

    def ask(
        self, method: str, path: str, key: str | None = None, who: str = ANNA, **more: Any
    ) -> Any:
        """A request of a user, with a key or without."""
        headers = {"Authorization": f"Bearer {self.secrets[who]}"} | more.pop("headers", {})
        headers |= {} if key is None else {"Idempotency-Key": key}
        return self.client.request(method, path, headers=headers, **more)

    def view(self, who: str) -> str:
        """What answers are kept for."""
        return Caller.of(users.recorded(self.records, who), "admin", logged_in=False).view


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[Served]:
    """The sample frames, served."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    secrets = {}
    for name in (ANNA, BOB):
        users.add(records, name, ["admin"], None)
        secrets[name] = tokens.create(records, name, "t", "admin", timedelta(days=1))[1]
    app = create_app(Settings(home=shared_home, cache=None))
    # This client, and no other: one that was not entered has an event loop for each request, and
    # what waits in one of several is not woken by another.
    with TestClient(app) as client:
        yield Served(client, app, records, secrets)


def dataset(name: str) -> dict[str, Any]:
    """A dataset to be made."""
    return {"name": name, "question": {"limit": 3}}


def versions(served: Served, name: str) -> int:
    """How many versions a dataset has."""
    return len(served.ask("GET", "/v1/datasets", params={"name": name}).json()["datasets"])


def collection(name: str) -> dict[str, Any]:
    """A collection to be made, which can be once."""
    return {"name": name, "rule": "size > 0"}


def test_a_repeated_request_is_answered_and_not_done_again(served: Served) -> None:
    """Status, body and Location of the first; without a key, or with another, it is done again."""
    first = served.ask("POST", "/v1/datasets", "k-0", json=dataset("again"))
    assert first.status_code == 201, first.text
    second = served.ask("POST", "/v1/datasets", "k-0", json=dataset("again"))
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["location"] == first.headers["location"] == "/v1/datasets/again@1"
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    body = collection("again")
    for key, who, status in (
        ("k-1", ANNA, 201), ("k-1", ANNA, 201), ("k-2", ANNA, 409), (None, ANNA, 409),
        ("k-1", BOB, 409),
    ):  # fmt: skip
        answer = served.ask("POST", "/v1/collections", key, who, json=body)
        assert answer.status_code == status, (key, who)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/datasets", dataset("other")),
        ("/v1/datasets?at=1", dataset("reused")),
        ("/v1/collections", {"name": "reused", "rule": "size > 0"}),
    ],
)
def test_a_key_is_of_one_request(served: Served, path: str, body: dict[str, Any]) -> None:
    """Another body, parameter or path under it: 422, and nothing is made."""
    served.ask("POST", "/v1/datasets", "k-3", json=dataset("reused"))
    answer = served.ask("POST", path, "k-3", json=body)
    assert answer.status_code == 422
    assert answer.json()["title"] == "IdempotencyKeyReused"


def test_what_failed_may_be_made_again(served: Served) -> None:
    """A refused request keeps no answer: the same key serves the corrected one."""
    assert served.ask("POST", "/v1/datasets", "k-4", json=dataset("a/b")).status_code == 400
    assert served.ask("POST", "/v1/datasets", "k-4", json={}).status_code == 422
    assert served.ask("POST", "/v1/datasets", "k-4", json=dataset("ab")).status_code == 201


def test_answers_are_kept_for_a_day(served: Served) -> None:
    """Then the key is free."""
    served.ask("POST", "/v1/collections", "k-5", json=collection("daily"))
    with served.records.session() as session:
        key = KeyedRequest.of(served.view(ANNA), "k-5", b"").key
        lifetime = session.get_one(IdempotencyKey, key).until - now()
        assert timedelta(hours=23, minutes=59) < lifetime <= timedelta(hours=24)
        session.execute(update(IdempotencyKey).values(until=now() - timedelta(seconds=1)))
    again = served.ask("POST", "/v1/collections", "k-5", json=collection("daily"))
    assert (again.status_code, again.json()["title"]) == (409, "AlreadyExists")


def test_of_many_at_once_one_creates(served: Served) -> None:
    """Sixteen at once: one is done, the others get its answer or are told to ask again."""
    body = collection("race")
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda _: served.ask("POST", "/v1/collections", "k-6", json=body), range(16))
        )
    created = [answer for answer in answers if answer.status_code == 201]
    busy = [answer for answer in answers if answer.status_code == 409]
    assert len(created) + len(busy) == 16
    assert len({answer.content for answer in created}) == 1
    assert {(a.json()["title"], a.headers["retry-after"]) for a in busy} <= {
        ("RequestUnderWay", "5")
    }


def test_a_request_whose_worker_died_is_made_again(served: Served) -> None:
    """While it may be under way: 409; once nothing has renewed it for a minute, the key is free."""
    fingerprint = (
        b"/v1/datasets\0\0" + httpx.Request("POST", "http://x", json=dataset("dead")).content
    )
    keyed = KeyedRequest.of(served.view(ANNA), "k-7", fingerprint)
    assert idempotency_keys.begin(served.records, keyed) is None
    busy = served.ask("POST", "/v1/datasets", "k-7", json=dataset("dead"))
    assert (busy.status_code, busy.json()["title"]) == (409, "RequestUnderWay")
    with served.records.session() as session:
        session.execute(update(IdempotencyKey).values(until=now() - timedelta(seconds=1)))
    assert served.ask("POST", "/v1/datasets", "k-7", json=dataset("dead")).status_code == 201


def test_no_secret_is_kept(served: Served) -> None:
    """Neither of a password that was sent, nor of a token; new tokens take no key at all."""
    body = {"name": "eve", "roles": ["datauser"], "password": "a long sentence of words"}
    answer = served.ask("POST", "/v1/users", "k-8", json=body)
    assert answer.status_code == 201, answer.text
    again = served.ask("POST", "/v1/users", "k-8", json=body)
    assert (again.status_code, again.json()) == (201, answer.json())
    with served.records.reading() as session:
        for row in session.scalars(select(IdempotencyKey)):
            assert "sentence" not in json.dumps([row.headers, row.body])
            assert "k-8" not in row.key
    refused = served.ask("POST", "/v1/tokens", "k-9", json={"name": "n"})
    assert (refused.status_code, refused.json()["title"]) == (400, "InvalidInput")
    for key in ("", " ", "k" * 256, "a b"):
        answer = served.ask("POST", "/v1/datasets", key, json=dataset("keys"))
        assert answer.status_code == 400, key
    assert versions(served, "keys") == 0


def test_etags(served: Served) -> None:
    """One state, one ETag; 304 for who has it; another one after a change."""
    served.ask("POST", "/v1/users", json={"name": "etta", "roles": ["datauser"]})
    first = served.ask("GET", "/v1/users/etta")
    etag = first.headers["etag"]
    assert served.ask("GET", "/v1/users/etta").headers["etag"] == etag
    for known in (etag, f'"x", {etag}', f"W/{etag}", "*"):
        answer = served.ask("GET", "/v1/users/etta", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b""), known
        assert answer.headers["etag"] == etag
    answer = served.ask("GET", "/v1/users/etta", headers={"If-None-Match": '"x"'})
    assert (answer.status_code, answer.json()) == (200, first.json())
    served.ask("PATCH", "/v1/users/etta", json={"disabled": True})
    assert served.ask("GET", "/v1/users/etta").headers["etag"] != etag


def test_a_change_of_another_state_is_refused(served: Served) -> None:
    """If-Match: 412 and no change where somebody was faster, or there is nothing."""
    served.ask("POST", "/v1/users", json={"name": "ida", "roles": ["datauser"]})
    etag = served.ask("GET", "/v1/users/ida").headers["etag"]

    def change(method: str, tag: str, **more: Any) -> int:
        path, headers = "/v1/users/ida", {"If-Match": tag}
        return int(served.ask(method, path, headers=headers, **more).status_code)

    assert change("PATCH", '"x"', json={"disabled": True}) == 412
    assert served.ask("GET", "/v1/users/ida").json()["disabled"] is False
    assert change("PATCH", etag, json={"disabled": True}) == 200
    assert change("PATCH", etag, json={"disabled": False}) == 412
    assert change("DELETE", etag) == 412
    assert change("DELETE", "*") == 204
    assert change("DELETE", "*") == 412
    assert served.ask("DELETE", "/v1/users/ida").status_code == 404
    token = served.ask("POST", "/v1/tokens", json={"name": "e"}).json()["id"]
    answer = served.ask("DELETE", f"/v1/tokens/{token}", headers={"If-Match": '"x"'})
    assert answer.status_code == 412
    response = served.ask("GET", f"/v1/tokens/{token}")
    assert "token" not in response.json()
    answer = served.ask(
        "DELETE", f"/v1/tokens/{token}", headers={"If-Match": response.headers["etag"]}
    )
    assert answer.json()["state"] == "revoked"


def unpacked(content: bytes, coding: str) -> bytes:
    """What was compressed."""
    if coding == "gzip":
        return gzip.decompress(content)
    return zstandard.ZstdDecompressor().decompressobj().decompress(content)


def raw(served: Served, path: str, **headers: str) -> tuple[Any, bytes]:
    """An answer and its bytes as they came."""
    all_headers = {"Authorization": f"Bearer {served.secrets[ANNA]}", **headers}
    with served.client.stream("GET", path, headers=all_headers) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_answers_are_compressed(served: Served, coding: str) -> None:
    """The same document in fewer bytes; its ETag differs, and both are taken back."""
    path = "/v1/frames?limit=24"
    plain, document = raw(served, path, **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    answer, content = raw(served, path, **{"Accept-Encoding": coding})
    assert answer.headers["content-encoding"] == coding
    assert answer.headers["vary"] == plain.headers["vary"]
    assert "Accept-Encoding" in answer.headers["vary"].split(", ")
    assert unpacked(content, coding) == document
    assert len(content) < len(document) / 2
    tagged = answer.headers["etag"]
    assert tagged == plain.headers["etag"][:-1] + f'-{coding}"'
    for known in (tagged, plain.headers["etag"]):
        again, nothing = raw(served, path, **{"Accept-Encoding": coding, "If-None-Match": known})
        assert (again.status_code, nothing, again.headers["etag"]) == (304, b"", tagged)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, zstd", "zstd"), ("gzip;q=1.0, zstd;q=0.5", "gzip"), ("br", None), ("*", "zstd"),
        ("zstd;q=0, *", "gzip"), ("gzip;q=0", None), ("GZIP", "gzip"), ("", None),
        ("gzip;q=x", None), ("identity, gzip ; q = 0.1", "gzip"), ("*;q=0", None),
    ],
)  # fmt: skip
def test_the_client_chooses(served: Served, accepted: str, coding: str | None) -> None:
    """Weights count; what cannot be read asks for nothing."""
    answer, _ = raw(served, "/v1/frames", **{"Accept-Encoding": accepted})
    assert answer.status_code == 200
    assert answer.headers.get("content-encoding") == coding


def test_what_is_not_compressed(served: Served) -> None:
    """Small answers, pictures, Discover's, what holds a secret, and nothing twice."""
    fkey = served.ask("GET", "/v1/frames?limit=1").json()["frames"][0]["fkey"]
    for path in ("/v1/sources", f"/v1/images/{fkey}", "/policyengine/v1/tags", "/v1/tokens"):
        answer, _ = raw(served, path, **{"Accept-Encoding": "gzip, zstd"})
        assert answer.status_code == 200
        assert "content-encoding" not in answer.headers, path
    sql = served.client.post(
        "/v1/sql",
        json={"statement": "select * from metaocean"},
        headers={
            "Authorization": f"Bearer {served.secrets[ANNA]}",
            "Accept": "application/vnd.apache.parquet", "Accept-Encoding": "gzip",
        },
    )  # fmt: skip
    assert sql.content[:4] == b"PAR1"
    assert "content-encoding" not in sql.headers


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_streaming_answer_stays_one(coding: str) -> None:
    """Each part can be read before the next one is made."""
    calls: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def parts() -> Any:
            for number in range(3):
                calls.append(number)
                yield f"part {number} ".encode() * 2000

        await StreamingResponse(parts(), media_type="text/plain")(scope, receive, send)

    read: list[bytes] = []

    async def ask() -> None:
        decoder: Any = (
            zstandard.ZstdDecompressor().decompressobj()
            if coding == "zstd"
            else zlib.decompressobj(31)
        )

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                text = decoder.decompress(message["body"])
                if text:
                    read.append(text[:6])
                    assert len(calls) == len(read)

        async def receive() -> Any:
            await anyio.sleep(60)

        scope = {
            "type": "http", "method": "GET", "path": "/v1/x", "asgi": {"spec_version": "2.4"},
            "headers": [(b"accept-encoding", coding.encode())],
        }  # fmt: skip
        await Compression(app)(scope, receive, send)

    anyio.run(ask)
    assert read == [b"part 0", b"part 1", b"part 2"]
