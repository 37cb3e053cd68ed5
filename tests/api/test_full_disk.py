"""A server whose home's disk is full: what only reads goes on, for limited users too."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from api.app import create_app
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.records.store import RecordStore
from catalog.records.user_tables import Token
from tests.disks import small_disk
from tests.pipeline.homes import copy_home

SCENE = "20260311_130314"


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """The disk without a byte to spare, within the block."""
    filler = disk / "filler"
    status = os.statvfs(disk)
    filler.write_bytes(bytes(status.f_bavail * status.f_frsize))
    try:
        yield
    finally:
        filler.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    with small_disk(tmp_path / "disk", "size=64m") as folder:
        yield folder


@pytest.mark.wide
def test_reading_goes_on_while_the_home_s_disk_is_full(catalogued: Path, disk: Path) -> None:
    """Lists, datasets, their frames, exports; the first look at a dataset, and a token's first use.

    What is refused names no folder of the server to a limited user.
    """
    home = copy_home(catalogued, disk)
    records = RecordStore(home / "records" / "records.sqlite")
    row_collections.add(records, "some", f"filename like '%/{SCENE}/%'")
    secrets = {}
    for name, role in (("root", "admin"), ("cora", "collectionadmin")):
        users.add(records, name, [role], None)
        secrets[name] = tokens.create(records, name, "t", "admin", timedelta(days=1))[1]
    row_collections.assign(records, "some", "cora")
    with TestClient(create_app(Settings(home=home, cache=None))) as client:

        def ask(name: str, method: str, path: str, **more: object) -> "tuple[int, str]":
            headers = {"Authorization": f"Bearer {secrets[name]}"}
            answer = client.request(method, path, headers=headers, **more)  # type: ignore[arg-type]
            return answer.status_code, answer.text

        for number in range(2):
            body = {"name": f"d{number}", "question": {}}
            assert ask("root", "POST", "/v1/datasets", json=body)[0] == 201
        # The limited catalog is open, and no dataset was looked at through it.
        assert ask("cora", "GET", "/v1/frames?limit=1")[0] == 200
        with records.session() as session:
            session.execute(update(Token).values(last_used=None))
        with filled(disk):
            for name in ("root", "cora"):
                for path in (
                    "/v1/datasets", "/v1/datasets/d0", "/v1/datasets/d0/diff?other=d1",
                    "/v1/datasets/d0/export?format=csv", "/v1/info", "/v1/frames?limit=2",
                    "/v1/jobs", "/v1/classes", "/v1/me", "/datasets", "/",
                ):  # fmt: skip
                    status, text = ask(name, "GET", path)
                    assert (path, status) == (path, 200), text
            status, text = ask("cora", "POST", "/v1/datasets", json={"name": "x", "question": {}})
            assert status == 507
            assert str(disk) not in text
            status, text = ask("root", "POST", "/v1/datasets", json={"name": "x", "question": {}})
            assert status == 507
            assert str(home) in text
            status, text = ask("cora", "GET", "/v1/users")
            assert status == 403
