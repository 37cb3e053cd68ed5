"""A table of tags that is too much for its server, and one that nobody waits for."""

import io
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.storage.location import WRITE_LOCK
from tests.api.servers import catch_up, serving, wait_until
from tests.catalog.test_write_lock import has_tickets
from tests.pipeline.homes import copy_home, open_home


@pytest.mark.wide
def test_what_is_too_much(shared_url: str) -> None:
    """60 GB in 20 kB, and a thousand columns: refused at once; no tag is made."""
    rows = 1_000_000
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 30_000])
    body = io.BytesIO()
    pq.write_table(pa.table({"filename": column, "wx": column}), body, compression="zstd")
    wide = "filename," + ",".join(f"c{n}" for n in range(1_000)) + "\nx" + ",1" * 1_000
    with httpx.Client(base_url=shared_url, timeout=300) as client:
        before = client.get("/v1/tags?limit=1000").json()["tags"]
        for content, kind, words in (
            (body.getvalue(), "application/vnd.apache.parquet", "the body: its values take more"),
            (wide.encode(), "text/csv", "1,001 columns, at most 512"),
        ):
            answer = client.post(
                "/v1/tags/values?family=much", content=content, headers={"Content-Type": kind}
            )
            assert answer.status_code == 400
            assert words in answer.json()["detail"]
        assert client.get("/v1/tags?limit=1000").json()["tags"] == before


TABLE = f"filename,{','.join(f'left{n}' for n in range(500))}\nx.png{',1' * 500}\n"
POINT = '{"type": "Point", "coordinates": [11.0, 48.0]}'


@pytest.mark.wide
@pytest.mark.parametrize(
    ("path", "query", "media_type", "text"),
    [
        ("tags/values", "family=left", "text/csv", TABLE),
        (
            "tags/map",
            "family=left&within=100&latitude=front&longitude=side",  # degrees, too
            "application/geo+json",
            POINT,
        ),
    ],
)
def test_a_client_that_leaves(
    shared_url: str, shared_home: Path, path: str, query: str, media_type: str, text: str
) -> None:
    """The import, which waits for the catalog, ends, and nothing of it is written."""
    body, where = text.encode(), urlsplit(shared_url)
    head = (
        f"POST /v1/{path}?{query} HTTP/1.1\r\nHost: {where.netloc}\r\n"
        f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    workspace = open_home(shared_home)
    with workspace.whole_catalog.lock(WRITE_LOCK, "held"):
        with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
            connection.sendall(head.encode() + body)
            lock = shared_home / "catalog" / f"{WRITE_LOCK}.lock"
            wait_until(lambda: has_tickets(lock, 1))
            port = connection.getsockname()[1]
        wait_until(lambda: is_closed(where.port or 0, port))
        catch_up(shared_url)  # its request has been told, too
    workspace.close()
    with httpx.Client(base_url=shared_url, timeout=300) as client:
        pattern = re.compile(rf'framesift_requests_total\{{[^}}]*{path}"[^}}]*status="499"\}} 1')
        wait_until(lambda: pattern.search(client.get("/metrics").text) is not None)
        assert client.get("/v1/families/left").status_code == 404


def is_closed(ours: int, its: int) -> bool:
    """Whether the server, which listens on one port, has closed a connection from another."""
    ends = f"0100007F:{ours:04X} 0100007F:{its:04X} "
    lines = [line for line in Path("/proc/net/tcp").read_text().splitlines() if ends in line]
    return all(line.split()[3] not in ("01", "08") for line in lines)  # established, left by it


@pytest.mark.wide
def test_jobs_in_metrics_are_as_they_are_now(catalogued: Path, tmp_path: Path) -> None:
    """A scan that nobody asks for ends there, too."""
    home = copy_home(catalogued, tmp_path, with_source=True)
    with serving(home) as (url, _), httpx.Client(base_url=url, timeout=300) as client:
        assert client.post("/v1/scans", json={"source": "a2d2"}).status_code == 202
        line = 'framesift_jobs{kind="scan",state="done"} 1.0'
        wait_until(lambda: line in client.get("/metrics").text)
