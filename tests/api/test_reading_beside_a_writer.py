"""Reading waits for no writer: every list is answered while both stores are being written."""

from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from api.app import create_app
from api.settings import Settings
from catalog.accounts import tokens, users
from catalog.records import engine
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from tests.api.documents import openapi_document
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make


@pytest.mark.wide
def test_every_list_is_read_while_a_writer_is_open(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GET that would take a write lock fails at once, for the writers hold both without end."""
    monkeypatch.setattr(engine, "BUSY_S", 0)
    paths = [
        path
        for path, operations in openapi_document()["paths"].items()
        if "get" in operations
        and "{" not in path
        and path != "/auth/v1/token"  # a login makes a token, and so writes
    ]
    workspace = open_home(home)
    make(workspace, "all", split="train=0.75,validation=0.25")
    users.add(workspace.records, "ann", ["admin"], "a sentence is a good one")
    _, token = tokens.create(workspace.records, "ann", "t", "admin", timedelta(days=1))
    writer = RecordStore(home / "records" / "records.sqlite")
    app = create_app(Settings(home=home, lock_wait_s=0.01, snapshot_memory_mb=0))
    headers = {"Authorization": f"Bearer {token}"}
    with (
        TestClient(app, base_url="http://127.0.0.1:8008") as client,
        workspace.whole_catalog.writing("without end"),
        writer.session() as session,
    ):
        session.execute(select(Source))  # the transaction begins with its first statement
        answers = {path: client.get(path, headers=headers) for path in paths}
    waited = {path: one.text for path, one in answers.items() if one.status_code in (500, 503)}
    assert not waited
    assert sum(one.status_code == 200 for one in answers.values()) > 20
    for path in ("/v1/sources", "/v1/scans", "/v1/datasets", "/v1/jobs", "/v1/tokens", "/v1/users"):
        assert answers[path].status_code == 200, answers[path].text
