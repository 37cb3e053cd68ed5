"""Rows of sql_query over real sockets: every format, cut connections, clients that go away."""

import io
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.api.servers import counted, framesift, serving, until_ready, wait_until
from tests.pipeline.homes import FRAMES
from tests.query.workbooks import workbook_columns

FRAME_ROWS = "select t_car.fkey, int(t_car.value) as car from t_car order by 1"
ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9))
MILLIONS = "select v.* from metaocean a, metaocean b, metaocean c, metaocean_view v"
FAILS_LATE = """select filename, 1000 / (900000 - n) from
(select a.filename, row_number() over () as n from metaocean a, t_car b, t_car c, t_car d) x"""
PATH = "/db2whrest/v1/sql_query"
ACCEPTED = {
    "csv": "text/csv",
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "arrow-stream": "application/vnd.apache.arrow.stream",
    "arrow": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[str]:
    """URL of a server whose statements may take so long that it is no test."""
    with serving(shared_home, variables={"FRAMESIFT_QUERY_TIMEOUT_S": "600"}) as (url, _):
        until_ready(url)
        yield url


def read_back(format_: str, body: bytes) -> list[dict[str, object]]:
    """The rows of an answer."""
    if format_ == "json":
        return list(json.loads(body))
    if format_ == "ndjson":
        return [json.loads(line) for line in body.splitlines()]
    if format_ == "arrow-stream":
        return pa.ipc.open_stream(body).read_all().to_pylist()  # type: ignore[no-any-return]
    if format_ == "arrow":
        return pa.ipc.open_file(body).read_all().to_pylist()  # type: ignore[no-any-return]
    if format_ == "xlsx":
        return pa.table(workbook_columns(body)).to_pylist()  # type: ignore[no-any-return]
    return pq.read_table(io.BytesIO(body)).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("format_", [name for name in ACCEPTED if name != "csv"])
def test_every_format(served: str, format_: str) -> None:
    """The same rows in each, with the media type that was asked for."""
    url = served + PATH
    csv = httpx.post(url, content=FRAME_ROWS)
    answer = httpx.post(url, content=FRAME_ROWS, headers={"Accept": ACCEPTED[format_]})
    assert answer.headers["content-type"] == ACCEPTED[format_]
    assert answer.headers["Framesift-Max-Rows"] == "1000000"
    rows = read_back(format_, answer.content)
    assert len(rows) == FRAMES
    assert csv.text == "".join(f'{n},"{row["fkey"]}",{row["car"]}\n' for n, row in enumerate(rows))


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/csv; charset=utf-8"),
        ("", "text/csv; charset=utf-8"),
        ("text/html, application/json;q=0.9", "application/json"),
        ("Application/JSON", "application/json"),
        ("image/png", "text/csv; charset=utf-8"),
    ],
)
def test_what_accept_decides(served: str, accept: str, kind: str) -> None:
    """The first format it names, or CSV."""
    answer = httpx.post(served + PATH, content=FRAME_ROWS, headers={"Accept": accept})
    assert answer.headers["content-type"] == kind


@pytest.mark.parametrize("format_", ACCEPTED)
def test_no_rows(served: str, format_: str) -> None:
    """An answer all the same, and a complete one."""
    statement = "select fkey, size from metaocean where 1 = 0"
    headers = {"Accept": ACCEPTED[format_]}
    answer = httpx.post(served + PATH, content=statement, headers=headers)
    assert answer.status_code == 200
    assert answer.content == b"" if format_ == "csv" else not read_back(format_, answer.content)


# A workbook is made as Parquet is, and one of so many rows becomes a task before it fails.
@pytest.mark.parametrize("format_", [name for name in ACCEPTED if name != "xlsx"])
def test_an_error_on_the_way_is_no_answer(served: str, format_: str) -> None:
    """The connection is cut after some rows; Parquet, made before it is sent, is refused."""
    headers = {"Accept": ACCEPTED[format_]}
    if format_ == "parquet":
        answer = httpx.post(served + PATH, content=FAILS_LATE, headers=headers, timeout=120)
        assert answer.status_code == 400
        assert "SQL0801N" in answer.text
        return
    received = io.BytesIO()
    request = {"content": FAILS_LATE, "headers": headers, "timeout": 120}
    with httpx.stream("POST", served + PATH, **request) as answer:  # type: ignore[arg-type]
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            received.writelines(answer.iter_bytes())
    assert received.getvalue()
    assert httpx.post(served + PATH, content=FRAME_ROWS).status_code == 200


def test_rows_come_before_the_last_is_computed(served: str) -> None:
    """The first of millions of rows are there at once."""
    with httpx.stream("POST", served + PATH, content=MILLIONS, timeout=120) as answer:
        assert next(answer.iter_lines()).startswith("0,")


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("statement", [ENDLESS, MILLIONS], ids=["no row yet", "rows"])
def test_a_client_that_goes_away_stops_its_statement(
    served: str, method: str, statement: str
) -> None:
    """No statement runs any more, long before the server's own time limit."""
    address = urlsplit(served)
    target = PATH if method == "POST" else f"{PATH}?{statement.replace(' ', '+')}"
    body = statement if method == "POST" else ""
    with socket.create_connection((address.hostname, address.port)) as client:
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        client.sendall(head.encode() + body.encode())
        wait_until(lambda: counted(served) == (1, 0))  # and not much longer: it becomes a task
        if statement != ENDLESS:
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
    wait_until(lambda: counted(served) == (0, 0))
    assert httpx.post(served + PATH, content=FRAME_ROWS).status_code == 200


@pytest.mark.wide
def test_clients_that_read_nothing_leave_the_others_alone(served: str) -> None:
    """Connections that stand still hold a statement each, and no thread of other requests."""
    address = urlsplit(served)
    request = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(MILLIONS)}\r\n\r\n"
    clients = []
    try:
        for _ in range(12):  # of the 16 that one caller may hold
            clients.append(socket.create_connection((address.hostname, address.port)))
            clients[-1].sendall((request + MILLIONS).encode())
        for client in clients:
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert httpx.get(f"{served}/readyz", timeout=120).status_code == 200
        assert httpx.post(served + PATH, content=FRAME_ROWS, timeout=120).status_code == 200
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("format_", ["csv", "json", "ndjson", "parquet", "arrow"])
def test_the_command_writes_every_format(catalogued: Path, tmp_path: Path, format_: str) -> None:
    """Framesift sql --format --out: the file is complete, and nothing else is left."""
    out = tmp_path / "rows"
    run = framesift(catalogued, "sql", FRAME_ROWS, "--format", format_, "--out", out)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    if format_ == "csv":
        assert out.read_text().count("\n") == FRAMES
    else:
        assert len(read_back(format_, out.read_bytes())) == FRAMES
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.wide
def test_the_command_prints_and_leaves_no_half_file(catalogued: Path, tmp_path: Path) -> None:
    """JSON on the terminal is one document; a statement that fails late leaves no file."""
    run = framesift(catalogued, "sql", FRAME_ROWS, "--json")
    assert len(json.loads(run.stdout)) == FRAMES
    assert framesift(catalogued, "sql", FRAME_ROWS, "--format", "table").stdout.count("\n") > FRAMES
    failed = framesift(catalogued, "sql", FAILS_LATE, "--out", tmp_path / "x.csv")
    assert failed.returncode == 1
    assert "SQL0801N" in failed.stderr
    assert list(tmp_path.iterdir()) == []
