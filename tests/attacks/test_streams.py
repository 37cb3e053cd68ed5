"""Hundreds of listeners to one job: everybody else is answered as before."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from catalog.accounts import users
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from tests.attacks.arena import Server, arena
from tests.attacks.conftest import Watched

LISTENERS = 500


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    """A server that lets one user listen 400 times; a job of its home goes on for ever."""
    records = RecordStore(home / "records" / "records.sqlite")
    with records.session() as session:
        session.add(
            Job(
                name="endless", kind="scan", backend="of another version", state="running",
                request={}, paths={"folder": "/nowhere", "logs": "/nowhere"}, user="dataadmin",
            )
        )  # fmt: skip
    with arena(home, variables={"FRAMESIFT_STREAMS_EACH": "400"}) as server:
        account = users.recorded(records, "dataadmin").account
        with records.session() as session:
            session.execute(update(Job).values(account=account))
        yield server


def test_many_listeners(server: Server, watched: Watched) -> None:
    """Two users listen as often as they may, or 500 times; others are answered meanwhile."""
    limits = httpx.Limits(max_connections=2 * LISTENERS)
    with contextlib.ExitStack() as open_streams:
        statuses = []
        with watched(server, most_mb=400):
            for account in ("admin", "dataadmin"):
                client = open_streams.enter_context(
                    httpx.Client(
                        base_url=server.url, headers=server.headers[account], limits=limits,
                        timeout=300,
                    )
                )  # fmt: skip
                for _ in range(LISTENERS if account == "admin" else 100):
                    answer = open_streams.enter_context(
                        client.stream("GET", "/v1/jobs/endless/events")
                    )
                    statuses.append(answer.status_code)
            time.sleep(3)  # in which each of them is told how the job stands, or nothing new
            with server.client("read") as other:
                assert other.get("/v1/classes").status_code == 200
        assert statuses == [200] * 400 + [429] * 100 + [200] * 100
    with (  # those that were closed count no more
        server.client("admin") as again,
        again.stream("GET", "/v1/jobs/endless/events") as answer,
    ):
        assert answer.status_code == 200
        assert next(answer.iter_lines()) == "retry: 2000"
