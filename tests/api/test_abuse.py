"""What a server does with those who mean it no good: the others are served meanwhile."""

import contextlib
import http.client
import io
import json
import re
import resource
import socket
import struct
import subprocess
import tarfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

from tests.api.raw_http import exchange
from tests.api.servers import counted, framesift, serving, until_ready, wait_until
from tests.pipeline.homes import copy_home

pytestmark = pytest.mark.wide

SQL = "/db2whrest/v1/sql_query"
ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9))
MILLIONS = "select v.* from metaocean a, metaocean b, metaocean c, metaocean_view v"
LIMITS = {
    "FRAMESIFT_HEAD_TIMEOUT_S": "5",
    "FRAMESIFT_BODY_TIMEOUT_S": "2",
    "FRAMESIFT_WRITE_TIMEOUT_S": "2",
    "FRAMESIFT_KEEP_ALIVE_S": "600",
    "FRAMESIFT_CONNECTIONS": "40",
    "FRAMESIFT_MAX_BODY_MB": "1",
    "FRAMESIFT_STATEMENTS_AT_ONCE": "4",  # half of them for one caller, and so of those that wait
    "FRAMESIFT_STATEMENTS_WAITING": "4",
    "FRAMESIFT_QUERY_TIMEOUT_S": "600",  # so long is no test: what does not end is waited for
}
ask = httpx.Client(timeout=120, headers={"Connection": "close"})


@pytest.fixture(scope="module")
def served(shared_home: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A server with small limits, and its process."""
    with serving(shared_home, variables=LIMITS) as (url, process):
        until_ready(url, ask)
        yield url, process


@pytest.fixture
def url(served: tuple[str, "subprocess.Popen[str]"]) -> str:
    """The server's URL; it is idle."""
    return served[0]


def connected(url: str) -> socket.socket:
    """A new connection, with as little room for what is not read as there can be."""
    address = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(120)
    connection.connect((address.hostname, address.port))
    return connection


def is_served(url: str) -> bool:
    """Whether somebody else gets what they ask for, a small statement included."""
    health = ask.get(f"{url}/healthz")
    page = ask.get(f"{url}/v1/frames", params={"limit": 5})
    rows = ask.post(url + SQL, content="select count(*) from t_car")
    return (health.status_code, len(page.json()["frames"]), rows.text) == (200, 5, "0,24\n")


def closed_after(connection: socket.socket, most_s: float = 120.0) -> tuple[float, bytes]:
    """How long the server keeps a connection, and what it says at the end."""
    began, said = time.monotonic(), b""
    connection.settimeout(most_s)
    with contextlib.suppress(ConnectionError):
        while some := connection.recv(65536):
            said += some
    return time.monotonic() - began, said


def head(method: str, path: str, *lines: str) -> bytes:
    """A request's head."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def test_a_head_that_does_not_come(url: str) -> None:
    """Nothing at all, or a byte now and then: closed in time, with 408 where something was said."""
    silent, dripping, second = connected(url), connected(url), connected(url)
    dripping.sendall(b"GET /healthz HT")
    # After a whole request, the next one has as little time.
    second.sendall(head("GET", "/healthz"))
    said = b""
    while not said.endswith(b'{"status":"ok"}') and (some := second.recv(65536)):
        said += some
    assert said.startswith(b"HTTP/1.1 200")
    second.sendall(b"GET /healthz HT")

    def drip() -> None:
        with contextlib.suppress(OSError):
            for _ in range(1000):
                time.sleep(0.3)
                dripping.sendall(b"T")

    threading.Thread(target=drip, daemon=True).start()
    assert is_served(url)
    for connection, answer in (
        (silent, b""),
        (dripping, b"HTTP/1.1 408"),
        (second, b"HTTP/1.1 408"),
    ):
        seconds, said = closed_after(connection)
        assert said.startswith(answer)
        assert seconds < 60


def test_a_body_that_does_not_come(url: str) -> None:
    """The same for a body, however long it claims to be."""
    connections = [connected(url) for _ in range(3)]
    for number, connection in enumerate(connections):
        path = (SQL, "/v1/selections", "/v1/datasets")[number]
        connection.sendall(
            head("POST", path, "Content-Type: application/json", "Content-Length: 1000") + b'{"'
        )
    assert is_served(url)
    for connection in connections:
        seconds, said = closed_after(connection)
        assert said.startswith(b"HTTP/1.1 408")
        assert seconds < 60


def test_a_slow_body_that_goes_on_coming_is_taken(url: str) -> None:
    """A bad line is no attack: what brings some kilobytes a second has the time it needs."""
    statement = "select count(*) from t_car" + " " * 240_000
    lines = (f"Content-Length: {len(statement)}", "Connection: close")
    for _ in range(5):  # where this machine stands still for longer than a body may, once more
        connection = connected(url)
        said = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(head("POST", SQL, *lines))
            for start in range(0, len(statement), 40_000):
                connection.sendall(statement[start : start + 40_000].encode())
                time.sleep(0.5)
            said = closed_after(connection)[1]
        if said.startswith(b"HTTP/1.1 200"):
            break
    assert said.endswith(b"0,24\n\r\n0\r\n\r\n")


def test_bodies_over_the_limit(url: str) -> None:
    """413, said by the length, or when too much has come; on Discover's routes in its shape."""
    much = b"x" * (2**20 + 1)
    answer = ask.post(f"{url}/v1/selections", content=much)
    assert (answer.status_code, answer.json()["title"]) == (413, "BodyTooLarge")
    answer = ask.post(url + SQL, content=much)
    assert (answer.status_code, answer.json()["status"]) == (413, "error")

    def parts() -> Iterator[bytes]:
        for _ in range(40):
            yield b"[" * 2**15

    headers = {"Content-Type": "application/json"}
    for path in ("/v1/selections", "/mcp"):
        answer = ask.post(url + path, content=parts(), headers=headers)
        assert answer.status_code == 413, path
    # Only claimed: nothing is waited for.
    said = exchange(url, head("POST", "/v1/selections", "Content-Length: 99999999999"))
    assert said.statuses == [413]
    assert is_served(url)


def test_heads_over_the_limit(url: str) -> None:
    """431, and the connection is closed."""
    for request in (
        head("GET", "/healthz", "X: " + "y" * 70_000),
        head("GET", "/healthz", *(f"X-{n}: {'y' * 500}" for n in range(200))),
        b"GET /" + b"y" * 70_000,
    ):
        answer = exchange(url, request, wait_s=60)
        assert answer.statuses == [431], answer.raw[:100]
        assert answer.closed
    assert is_served(url)


def test_a_client_that_stops_reading_is_let_go(
    served: tuple[str, "subprocess.Popen[str]"],
) -> None:
    """Its statement ends, and others have its place: a caller has two for statements."""
    url, _ = served
    readers = [connected(url) for _ in range(2)]
    for reader in readers:
        reader.sendall(head("POST", SQL, f"Content-Length: {len(MILLIONS)}") + MILLIONS.encode())
        assert reader.recv(100).startswith(b"HTTP/1.1 200")
    assert is_served(url)
    for reader in readers:
        _, rest = closed_after(reader)
        assert b"\r\n0\r\n\r\n" not in rest[-7:], "it was given the end of an answer that was cut"


def test_statements_that_wait_are_counted(url: str) -> None:
    """Two run, two wait; a fifth is refused and told when to come again; nobody else suffers."""
    body = json.dumps({"statement": ENDLESS})
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    running = [connected(url) for _ in range(4)]
    try:
        for connection in running:
            connection.sendall(head("POST", "/v1/sql", *lines) + body.encode())
        wait_until(lambda: counted(url) == (2, 2))
        answer = ask.post(url + SQL, content="select 1 from t_car")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert answer.json()["status"] == "error"
        for path in ("/healthz", "/readyz", "/v1/frames?limit=5", "/v1/datasets", "/metrics"):
            assert ask.get(url + path).status_code == 200
    finally:
        for connection in running:
            connection.close()
    wait_until(lambda: counted(url) == (0, 0))
    assert is_served(url)


def test_more_connections_than_there_may_be(home: Path) -> None:
    """The oldest that ask nothing give way, to nothing else here; who asks is served."""
    with (
        serving(home, variables={**LIMITS, "FRAMESIFT_HEAD_TIMEOUT_S": "600"}) as (url, _),
        contextlib.ExitStack() as stack,
    ):
        busy = stack.enter_context(connected(url))
        busy.sendall(head("GET", "/healthz"))
        assert busy.recv(65536).startswith(b"HTTP/1.1 200")
        idle = [stack.enter_context(connected(url)) for _ in range(120)]
        assert is_served(url)
        for connection in idle[:60]:
            closed_after(connection)  # raises where it is kept


@pytest.mark.slow
def test_ten_thousand_idle_connections(home: Path) -> None:
    """Their server answers others as before."""
    number = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < number + 1000:
        pytest.skip(f"this machine allows {hard} open files, and {number + 1000} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    variables = {"FRAMESIFT_HEAD_TIMEOUT_S": "600", "FRAMESIFT_CONNECTIONS": str(number + 500)}
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        url, _ = stack.enter_context(serving(home, variables=variables))
        assert is_served(url)
        idle = []
        for _ in range(number):
            idle.append(connected(url))
            stack.callback(idle[-1].close)
        assert is_served(url)
        began = time.monotonic()
        for _ in range(20):
            assert ask.get(f"{url}/healthz").status_code == 200
        assert time.monotonic() - began < 60
        for connection in idle[::1000]:  # they are still there
            connection.sendall(head("GET", "/healthz"))
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "application/json; charset=utf-99", "application/xml", "image/png", "x" * 5000, "\xff\xfe"],
)  # fmt: skip
def test_wrong_content_types(url: str, kind: str) -> None:
    """A body that is none is refused, and never an error of ours."""
    for path in ("/v1/selections", "/v1/datasets", "/v1/sql/explain", "/db2whrest/v1/search"):
        for body in (b"", b"\xff\x00", b"a=b&c=d", b"--x\r\n\r\n--x--", b"[[[", b"{}", b"null"):
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
            connection.request("POST", path, body, {"Content-Type": kind.encode("latin-1")})
            answer = connection.getresponse()
            answer.read()
            assert answer.status < 500, (path, body)
            connection.close()


OUTSIDE = (
    "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd",
    "....//....//etc/passwd", "/etc/passwd", "%2fetc%2fpasswd", "..\\..\\etc\\passwd",
    "local:a2d2:../../../../etc/passwd", "local:a2d2:/etc/passwd", "%00", "a%00.png",
    "file:///etc/passwd", "..%252f..%252fetc%252fpasswd", "..%c0%af..%c0%afetc/passwd",
)  # fmt: skip


@pytest.mark.parametrize("outside", OUTSIDE)
def test_paths_lead_nowhere_else(url: str, outside: str) -> None:
    """Pictures, downloads, tasks, jobs, datasets: what lies elsewhere is not found."""
    for prefix in (
        "/v1/images/", "/v1/labels/", "/v1/overlays/", "/v1/frames/", "/v1/datasets/",
        "/v1/jobs/", "/v1/stagings/", "/v1/models/", "/v1/sources/", "/v1/scans/", "/v1/tags/",
        "/db2whrest/v1/report/", "/db2whrest/v1/task_status/", "/db2whrest/v1/summary_tables/",
        "/policyengine/v1/policies/", "/connmgr/v1/connections/",
    ):  # fmt: skip
        for behind in ("", "/download", "/logs", "/report", "/files/" + outside, "/image"):
            request = head("GET", f"{prefix}{outside}{behind}", "Connection: close")
            answer = exchange(url, request, wait_s=60)
            assert b"root:" not in answer.raw
            assert answer.statuses, (prefix, outside)
            assert answer.statuses[0] < 500, (prefix, outside, answer.raw)


def png(width: int, height: int, rows: int) -> bytes:
    """A PNG that claims to be so large, of black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b"\0" * (1 + 3 * width)) for _ in range(rows))
    return b"".join([
        b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        chunk(b"IDAT", packed + packer.flush()), chunk(b"IEND", b""),
    ])  # fmt: skip


BOMBS = {
    "claims more than it has": (1920, 1208, 1),
    "claims billions": (2**31 - 1, 2**31 - 1, 0),
    "claims a line of billions": (2**31 - 1, 1, 0),
    "has more than it claims": (16, 2, 200_000),
    "is large": (30_000, 30_000, 3_000),
}
"""Arguments of `png`."""


@pytest.mark.parametrize("name", BOMBS)
def test_pictures_that_burst(catalogued: Path, tmp_path: Path, name: str) -> None:
    """In a scan they are bad files, as pictures they are refused; memory stays what it was."""
    home = copy_home(catalogued, tmp_path, with_source=True)
    root = tmp_path / "source"
    image = min(root.rglob("*_camera_frontcenter_*.png"))
    label = Path(str(image).replace("/camera/", "/label/").replace("_camera_", "_label_"))
    assert label.exists()
    for path in (image, label):
        path.write_bytes(png(*BOMBS[name]))
    scan = framesift(home, "ingest", "a2d2")
    assert scan.returncode == 0, scan.stderr
    with serving(home) as (url, process):
        fkey = quote(f"local:a2d2:{image.relative_to(root)}")
        for kind, query in (("images", "?width=99"), ("labels", "?width=99"), ("overlays", "")):
            answer = ask.get(f"{url}/v1/{kind}/{fkey}{query}")
            assert answer.status_code in (404, 422), answer.text
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])
        assert peak < 1_500_000
        until_ready(url, ask)


@pytest.mark.parametrize("name", ["claims terabytes", "many names", "leads outside", "is no tar"])
def test_archives_that_burst(home: Path, tmp_path: Path, name: str) -> None:
    """An archive is read by its table: what it claims is not made room for, none is written."""
    archive = tmp_path / "bomb.tar"
    if name == "claims terabytes":
        header = tarfile.TarInfo("a2d2/camera_lidar_semantic/20180807_145028/x.png")
        header.size = 2**45
        archive.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10240)
    elif name == "many names":
        with tarfile.open(archive, "w") as writer:
            for number in range(20_000):
                writer.addfile(tarfile.TarInfo(f"d{number}/" + "x/" * 20 + "y.png"))
    elif name == "leads outside":
        with tarfile.open(archive, "w") as writer:
            info = tarfile.TarInfo("../../../../tmp/framesift-was-here")
            info.size = 4
            writer.addfile(info, io.BytesIO(b"here"))
            link = tarfile.TarInfo("camera_lidar_semantic/x/camera/cam_front_center/y.png")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            writer.addfile(link)
    else:
        archive.write_bytes(zlib.compress(b"\0" * 10**8))
    added = framesift(home, "source", "add", "bomb", str(archive))
    scan = framesift(home, "ingest", "bomb", prefix=("timeout", "500"))
    for run in (added, scan):
        assert run.returncode in (0, 1), (run.returncode, run.stderr)
        assert "Traceback" not in run.stderr
    assert not Path("/tmp/framesift-was-here").exists()
    assert framesift(home, "catalog", "check").returncode == 0


INJECTIONS = (
    "'; drop table files; --", '" or 1=1 --', "x' union select * from lake.main.files --",
    "1; attach '/etc/passwd' as p", "${jndi:ldap://x}", "{{7*7}}", "%s%n", "\\'", "\x00", "ü\ud83d",
    "../../etc/passwd", "9" * 400, "-1", "NaN", "null", "[]", "{}", "a" * 5000, "",
)  # fmt: skip


def injected(parameter: dict[str, Any], text: str) -> str:
    """A parameter's value, encoded as bytes of any kind are."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


@pytest.mark.slow
def test_sql_in_every_parameter(served: tuple[str, "subprocess.Popen[str]"]) -> None:
    """Each parameter of each route that reads: never an error of ours, and nothing changes."""
    url, process = served
    before = state(url)
    for path, methods in ask.get(f"{url}/openapi.json").json()["paths"].items():
        operation = methods.get("get")
        if operation is None or path.endswith("/events"):
            continue
        with httpx.Client(timeout=300) as client:
            for parameter in operation.get("parameters", []):
                for text in INJECTIONS:
                    target = _target(path, operation["parameters"], parameter, text)
                    answer = client.get(url + target)
                    assert answer.status_code != 500, (target, answer.text)
                    assert "root:" not in answer.text
    assert state(url) == before
    assert process.poll() is None


def _target(path: str, parameters: list[dict[str, Any]], body: dict[str, Any], text: str) -> str:
    query = ""
    for parameter in parameters:
        value = injected(parameter, text if parameter is body else "1")
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", value or "x")
        elif parameter["in"] == "query" and (parameter is body or parameter.get("required")):
            query += f"&{parameter['name']}={value}"
    return path + ("?" + query[1:] if query else "")


def state(url: str) -> tuple[str, ...]:
    """What a statement that got through would have changed."""
    return (
        ask.get(f"{url}/readyz").text,
        ask.post(url + SQL, content="select count(*), sum(size) from metaocean").text,
        json.dumps(ask.get(f"{url}/v1/datasets").json()),
    )


HOSTS = {
    "localhost": 200, "127.0.0.1:8008": 200, "[::1]:8008": 200, "127.9.9.9": 200, "LOCALHOST": 200,
    "evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.nip.io": 421, "": 421,
    "[::": 421, "0.0.0.0": 421, "localhost@evil.example": 421, "lab.example": 200,
}  # fmt: skip


def test_names_of_others_are_not_answered_to(home: Path) -> None:
    """Whose page is open in a browser cannot read here by a name of its own (DNS rebinding)."""
    with serving(home, "--allowed-host", "lab.example") as (url, _):
        for host, status in HOSTS.items():
            request = f"GET /v1/classes HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            assert exchange(url, request.encode(), wait_s=60).statuses == [status], host
        answer = ask.get(f"{url}/v1/classes", headers={"Host": "evil.example"})
        assert answer.json()["title"] == "Misdirected Request"
        assert "--allowed-host" in answer.json()["detail"]
        # Nor can it send what it may not read the answer of.
        for origin, status in (("https://evil.example", 403), ("null", 403), (url, 200)):
            answer = ask.post(url + SQL, content="select 1 from t_car", headers={"Origin": origin})
            assert answer.status_code == status
