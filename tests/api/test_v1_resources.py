"""Sources, tags and statements over REST; lists page by page."""

import csv
import io
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.services.accounts.callers import Caller
from api.services.sources.places import allowed_place
from api.settings import Settings
from catalog.accounts import row_collections, tokens, users
from catalog.errors import InvalidInput, NotAllowed
from catalog.records.store import RecordStore
from ingest.sources.source_options import SourceOptions
from tests.pipeline.homes import SAMPLE

ADMIN = Caller("root", frozenset({"admin"}), "admin", logged_in=False)
WRITER = Caller("dora", frozenset({"dataadmin"}), "admin", logged_in=False)


class Served:
    """An application over a copy of the sample's home, with a user of three roles."""

    def __init__(self, client: TestClient, secrets: dict[str, str]) -> None:
        self.client, self.secrets = client, secrets

    def ask(self, method: str, path: str, who: str = "dora", **more: Any) -> Any:
        """A request of a user."""
        headers = {"Authorization": f"Bearer {self.secrets[who]}"} | more.pop("headers", {})
        return self.client.request(method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder below which sources may be named."""
    folder = tmp_path_factory.mktemp("roots")
    for name in ("one", "two", "three"):
        (folder / name).mkdir()
    (folder / "out").symlink_to("/etc")
    return folder


@pytest.fixture(scope="module")
def served(shared_home: Path, roots: Path) -> Iterator[Served]:
    """The sample frames, served."""
    records = RecordStore(shared_home / "records" / "records.sqlite")
    secrets = {}
    for name, role in (("root", "admin"), ("dora", "dataadmin"), ("otto", "datauser")):
        users.add(records, name, [role], None)
        secrets[name] = tokens.create(records, name, "t", "admin", timedelta(days=1))[1]
    row_collections.add(records, "none", "size < 0")
    settings = Settings(home=shared_home, cache=None, source_roots=(roots,))
    with TestClient(create_app(settings)) as client:
        yield Served(client, secrets)


def test_sources(served: Served, roots: Path) -> None:
    """Added, shown, listed by pages and fields, removed; a name is taken once."""
    before = served.ask("GET", "/v1/sources").json()["sources"]  # of whichever tests came earlier
    for name in ("two", "one"):
        body = {"name": name, "uri": f"file://{roots}/{name}", "platform": "NFS", "site": "here"}
        answer = served.ask("POST", "/v1/sources", json=body)
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"] == f"/v1/sources/{name}"
        assert answer.json() == {
            "name": name, "uri": str(roots / name), "platform": "NFS", "cluster": "local",
            "datasource": name, "site": "here", "part_of": name, "options": {},
            "layout": "", "notes": [],
        }  # fmt: skip
        assert served.ask("POST", "/v1/sources", json=body).status_code == 409
    names = sorted([*(source["name"] for source in before), "one", "two"])
    page = served.ask("GET", "/v1/sources", params={"limit": len(names) - 1}).json()
    assert [source["name"] for source in page["sources"]] == names[:-1]
    rest = served.ask("GET", "/v1/sources", params={"cursor": page["next"]}).json()
    assert [source["name"] for source in rest["sources"]] == names[-1:]
    assert rest["next"] is None
    of_nfs = served.ask("GET", "/v1/sources", params={"platform": "NFS"}).json()["sources"]
    nfs_before = [source["name"] for source in before if source["platform"] == "NFS"]
    assert [source["name"] for source in of_nfs] == sorted([*nfs_before, "one", "two"])
    removed = served.ask("DELETE", "/v1/sources/two")
    assert removed.json() == {"name": "two", "files_removed": 0}
    assert served.ask("GET", "/v1/sources/two").status_code == 404
    assert served.ask("DELETE", "/v1/sources/two").status_code == 404
    for body, status in (
        ({"name": "x", "uri": str(roots / "none")}, 400), ({"name": "a/b", "uri": "/x"}, 422),
        ({"name": "x", "uri": str(roots / "three"), "platform": "none"}, 400),
        ({"name": "x", "uri": "s3://b", "secret_key": "x"}, 400), ({"name": "x"}, 422),
        *(({"name": name, "uri": str(roots / "three")}, 422)
          for name in ("x\n", "..", ".x", "-x", "a b", "ä", "", "a;b", "x" * 129)),
        ({"name": "x", "uri": "\0"}, 400),
    ):  # fmt: skip
        assert served.ask("POST", "/v1/sources", json=body).status_code == status, body


def test_folders_that_may_be_named(served: Served, roots: Path) -> None:
    """Below the roots, links followed; an admin may name any; relative ones mean nothing."""
    for uri in (
        "/etc", f"{roots}/../{roots.name}x", f"{roots}/out", f"{roots}/out/ssl", "file:///etc",
        f"{roots}/one/../../", f"file://{roots}/%2e%2e/x", "FILE:/etc", "file://localhost/etc",
    ):  # fmt: skip
        answer = served.ask("POST", "/v1/sources", json={"name": "no", "uri": uri})
        assert answer.status_code == 403, uri
        assert "FRAMESIFT_SOURCE_ROOTS" in answer.json()["detail"]
    for uri in ("etc", "../etc", "file:etc", "file://elsewhere/etc"):
        answer = served.ask("POST", "/v1/sources", "root", json={"name": "no", "uri": uri})
        assert answer.status_code == 400, uri
    answer = served.ask("POST", "/v1/sources", "root", json={"name": "all", "uri": str(SAMPLE)})
    assert answer.status_code == 201
    assert served.ask("POST", "/v1/sources", "otto", json={}).status_code == 403


def test_limits_of_a_source(served: Served, roots: Path) -> None:
    """Given with it, changed and taken away again; what cannot be kept is refused."""
    source = {"name": "slow", "uri": str(roots / "one"), "max_mb_per_s": 2.5}
    for field, value, status, said in (
        ("max_mb_per_s", 1e-9, 400, "max_mb_per_s: got 1e-09, expected 0.001 to 1,000,000, or 0"),
        ("max_requests_per_s", -1, 422, "max_requests_per_s"),
    ):
        answer = served.ask("POST", "/v1/sources", json={**source, field: value})
        assert (answer.status_code, said in answer.text) == (status, True)
    added = served.ask("POST", "/v1/sources", json=source)
    assert added.json()["options"]["max_mb_per_s"] == 2.5
    changed = served.ask("PATCH", "/v1/sources/slow", json={"max_requests_per_s": 10}).json()
    assert (changed["max_mb_per_s"], changed["max_requests_per_s"]) == (2.5, 10)
    changed = served.ask("PATCH", "/v1/sources/slow", json={"max_mb_per_s": 0}).json()
    assert (changed["max_mb_per_s"], changed["max_requests_per_s"]) == (0, 10)


def test_folders_that_jobs_may_be_led_to(served: Served, roots: Path) -> None:
    """A mount is read by jobs: admins alone name one, of a new source and of one that is there."""
    source = {"name": "led", "uri": str(roots / "one"), "mount": "/etc"}
    answer = served.ask("POST", "/v1/sources", json=source)
    assert (answer.status_code, "mount: names a folder" in answer.text) == (403, True)
    assert served.ask("POST", "/v1/sources", json={**source, "mount": ""}).status_code == 201
    for user, status in ((None, 403), ("root", 200)):
        who = () if user is None else (user,)
        answer = served.ask("PATCH", "/v1/sources/led", *who, json={"mount": "/gpfs/a:/b"})
        assert answer.status_code == status
    assert answer.json()["mount"] == "/gpfs/a:/b"
    assert served.ask("PATCH", "/v1/sources/led", json={"mount": ""}).json()["mount"] == ""


@pytest.mark.parametrize(
    "uri", ["http://x/y", "https://x", "ftp://x", "gopher://x", "data:x", "s4://b", "jar:file:///x"]
)
def test_schemes_that_may_be_named(uri: str) -> None:
    """Folders and S3, or fewer; for admins, too."""
    with pytest.raises(NotAllowed, match="FRAMESIFT_SOURCE_SCHEMES"):
        allowed_place(Settings(), uri, SourceOptions(), ADMIN)


def test_fewer_schemes(roots: Path) -> None:
    """What the server lists counts."""
    only_s3 = Settings(source_schemes=("s3",), source_roots=(roots,))
    assert allowed_place(only_s3, "s3://b/p", SourceOptions(), WRITER) == "s3://b/p"
    with pytest.raises(NotAllowed, match="scheme file"):
        allowed_place(only_s3, str(roots / "one"), SourceOptions(), ADMIN)
    with pytest.raises(NotAllowed, match="admins may"):
        allowed_place(only_s3, "s3://b", SourceOptions(ca_bundle="/etc/passwd"), WRITER)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "127.0.0.1", "localhost", "[::1]", "10.0.0.8", "192.168.1.1:9000",
        "172.16.0.1", "[::ffff:169.254.169.254]", "0.0.0.0", "2130706433", "0x7f.1", "[fe80::1]",
        "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[::7f00:1]", "[2002:a9fe:a9fe::]",
        "[2001:0:a9fe:a9fe::1]", "[2001:0:808:808::5601:5601]",
        "192.0.0.192", "168.63.129.16", "[fec0::1]", "[::ffff:192.0.0.192]",
        "[64:ff9b::a83f:8110]", "[2002:a83f:8110::]", "[::ffff:10.0.0.8]",
        "[fd00::1]", "100.64.0.1", "224.0.0.1", "127.1", "localhost.", "[2002:7f00:1::]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("caller", [ADMIN, WRITER], ids=["admin", "writer"])
def test_s3_servers_inside_the_network_are_refused(host: str, caller: Caller) -> None:
    """By the address that the name stands for, however it is written; nothing is sent there."""
    options = SourceOptions(endpoint_url=f"http://{host}")
    with pytest.raises(NotAllowed, match=r"inside this server.*FRAMESIFT_SOURCE_HOSTS"):
        allowed_place(Settings(), "s3://bucket/prefix", options, caller)


def test_s3_servers_that_may_be_named() -> None:
    """Public addresses, and hosts that are listed; with a port, that port only."""
    listed = Settings(source_hosts=("localhost", "10.0.0.8:9000"))
    for endpoint in (
        "https://8.8.8.8",
        "https://[64:ff9b::808:808]",
        "http://localhost:1",
        "http://10.0.0.8:9000",
        "HTTP://LOCALHOST",
    ):
        options = SourceOptions(endpoint_url=endpoint)
        assert allowed_place(listed, "s3://b", options, WRITER) == "s3://b"
    options = SourceOptions(endpoint_url="http://10.0.0.8:9001")
    with pytest.raises(NotAllowed):
        allowed_place(listed, "s3://b", options, WRITER)
    with pytest.raises(NotAllowed, match="expected https://"):
        allowed_place(listed, "s3://b", SourceOptions(endpoint_url="http://8.8.8.8"), WRITER)
    for endpoint in ("http://", "http://x:99999", "http://[", "http://no.such.host.invalid"):
        with pytest.raises(InvalidInput):
            allowed_place(listed, "s3://b", SourceOptions(endpoint_url=endpoint), WRITER)


def test_a_refused_server_is_not_talked_to(served: Served) -> None:
    """Nobody connects to a listener on loopback that a source names."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        port = listener.getsockname()[1]
        body = {"name": "s", "uri": "s3://b", "endpoint_url": f"http://127.0.0.1:{port}"}
        assert served.ask("POST", "/v1/sources", json=body).status_code == 403
        with pytest.raises(TimeoutError):
            listener.accept()


def test_settings_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """As variables: commas between schemes and hosts, colons between folders."""
    monkeypatch.setenv("FRAMESIFT_SOURCE_SCHEMES", "S3, file")
    monkeypatch.setenv("FRAMESIFT_SOURCE_HOSTS", "minio:9000,ceph")
    monkeypatch.setenv("FRAMESIFT_SOURCE_ROOTS", "/data:/nfs")
    settings = Settings()
    assert settings.source_schemes == ("s3", "file")
    assert settings.source_hosts == ("minio:9000", "ceph")
    assert settings.source_roots == (Path("/data"), Path("/nfs"))


@pytest.mark.wide
def test_tags(served: Served) -> None:
    """Added with type and kind, shown, listed by name, family and kind."""
    body = {"tag": "weather", "kind": "Restricted", "values": ["sun", "fog"], "family": "sky"}
    answer = served.ask("POST", "/v1/tags", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == "/v1/tags/weather"
    assert answer.json() == {
        "tag": "weather", "family": "tags_sky", "type": "varchar", "kind": "Restricted",
        "values": ["sun", "fog"], "title": "", "classes": [],
    }  # fmt: skip
    assert served.ask("GET", "/v1/tags/weather").json() == answer.json()
    assert served.ask("POST", "/v1/tags", json=body).status_code == 409
    names: list[str] = []
    cursor = None
    while True:
        parameters: dict[str, Any] = {"limit": 7} | ({"cursor": cursor} if cursor else {})
        page = served.ask("GET", "/v1/tags", params=parameters).json()
        names += [tag["tag"] for tag in page["tags"]]
        if (cursor := page["next"]) is None:
            break
    assert names == sorted(set(names))
    assert {"weather", "car"} <= set(names)
    of_sky = served.ask("GET", "/v1/tags", params={"family": "tags_sky", "kind": "Restricted"})
    assert [tag["tag"] for tag in of_sky.json()["tags"]] == ["weather"]
    refused: list[tuple[dict[str, Any], int]] = [
        ({"tag": "A b"}, 400), ({"tag": "x", "type": "blob"}, 422), ({"tag": "size"}, 400),
        ({"tag": "x", "kind": "King"}, 400), ({}, 422), ({"tag": "x", "family": "a'; b"}, 400),
    ]  # fmt: skip
    for body, status in refused:
        assert served.ask("POST", "/v1/tags", json=body).status_code == status, body
    assert served.ask("GET", "/v1/tags/none").status_code == 404


def names_of(served: Served) -> list[str]:
    """File names of some frames."""
    statement = {"statement": "select filename from metaocean order by filename"}
    rows = served.ask("POST", "/v1/sql", json=statement).json()
    return [row["filename"] for row in rows if row["filename"].endswith(".png")][:4]


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["text/csv", "application/vnd.apache.parquet"])
def test_values_of_tags(served: Served, kind: str) -> None:
    """A table's columns become tags; rows that name no file are told."""
    files = [name.rpartition("/")[2] for name in names_of(served)]
    tag = "of_csv" if kind == "text/csv" else "of_parquet"
    table = pa.table({"filename": [*files, "no.png"], tag: [1, 2, 3, 4, 5]})
    sink = io.BytesIO()
    if kind == "text/csv":
        rows = zip(table["filename"].to_pylist(), table[tag].to_pylist(), strict=True)
        sink.write("\n".join([f"filename,{tag}", *(f"{a},{b}" for a, b in rows)]).encode())
    else:
        pq.write_table(table, sink)
    answer = served.ask(
        "POST", "/v1/tags/values", params={"family": "given"}, content=sink.getvalue(),
        headers={"Content-Type": kind},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert (document["rows"], document["imported"], document["unmatched"]) == (5, 4, 1)
    assert list(document["columns"]) == [tag]
    assert document["problems"][0]["key"] == "no.png"
    counted = {"statement": f"select count(*) as n from t_{tag}"}
    assert served.ask("POST", "/v1/sql", json=counted).json() == [{"n": 4}]


@pytest.mark.wide
def test_values_that_cannot_be_read(served: Served) -> None:
    """Another kind of body, damaged ones, ones that would grow: refused, and no path is told."""
    bomb = io.BytesIO()
    pq.write_table(pa.table({"a": pa.nulls(3 * 10**8, pa.int8())}), bomb)
    assert len(bomb.getvalue()) < 2**20
    parquet = "application/vnd.apache.parquet"
    for content, kind, status in (
        (b"x", "text/plain", 415), (b"", "text/csv", 400), (b"PAR1", parquet, 400),
        (b"PAR1xxxxPAR1", parquet, 400), (bomb.getvalue(), parquet, 400),
        (b"filename,a\n\xff\xfe,1\n", "text/csv", 400),
    ):  # fmt: skip
        answer = served.ask(
            "POST", "/v1/tags/values", params={"family": "given"}, content=content,
            headers={"Content-Type": kind},
        )  # fmt: skip
        assert answer.status_code == status, (content[:20], answer.text)
        assert "/tmp" not in answer.text


def test_rows_of_a_statement_in_every_format(served: Served) -> None:
    """JSON by default; what Accept names first; 406 for what there is not."""
    body = {"statement": "select filename, size from metaocean order by filename"}
    rows = served.ask("POST", "/v1/sql", json=body).json()
    assert len(rows) > 24

    def ask(accept: str) -> Any:
        return served.ask("POST", "/v1/sql", json=body, headers={"Accept": accept})

    assert ask("application/json").json() == rows
    assert len(ask("application/x-ndjson").text.splitlines()) == len(rows)
    named = csv.DictReader(io.StringIO(ask("text/csv").text))
    assert [{**row, "size": int(row["size"])} for row in named] == rows
    stream = ipc.open_stream(ask("application/vnd.apache.arrow.stream").content)
    assert stream.read_all().to_pylist() == rows
    parquet = ask("application/vnd.apache.parquet, text/csv")
    assert pq.read_table(io.BytesIO(parquet.content)).to_pylist() == rows
    assert parquet.headers["content-type"] == "application/vnd.apache.parquet"
    assert ask("image/png").status_code == 406
    assert ask("image/png, */*").json() == rows


def test_statements_that_fail(served: Served) -> None:
    """A problem document with Db2's codes; an old snapshot; rows of others are not seen."""
    wrong = served.ask("POST", "/v1/sql", json={"statement": "select nothing from metaocean"})
    assert wrong.status_code == 400
    assert wrong.headers["content-type"] == "application/problem+json"
    assert (wrong.json()["sqlcode"], wrong.json()["sqlstate"]) == (-206, "42703")
    count = {"statement": "select count(*) as n from metaocean"}
    for body, status in (
        (count | {"at": 10**9}, 404), (count | {"at": 0}, 422), ({}, 422),
        ({"statement": "delete from metaocean"}, 400), ({"statement": ""}, 400),
    ):  # fmt: skip
        assert served.ask("POST", "/v1/sql", json=body).status_code == status, body
    assert served.ask("POST", "/v1/sql", json=count | {"at": 1}).json()[0]["n"] == 0
    assert served.ask("POST", "/v1/sql", "otto", json=count).json() == [{"n": 0}]


def test_cursors_are_of_one_list(served: Served) -> None:
    """Garbage, another list's, one that was changed: 400, with what to do."""
    cursor = served.ask("GET", "/v1/tags", params={"limit": 1}).json()["next"]
    for path in ("sources", "scans", "jobs", "stagings", "models", "datasets", "users", "audit"):
        answer = served.ask("GET", f"/v1/{path}", "root", params={"cursor": cursor})
        assert answer.status_code == 400, path
        assert "begin without one" in answer.json()["detail"]
    for text in ("x", "", "AAAA", cursor + "A", "W10", "WzFd", "WyJ0YWdzIiwgMV0", "é", "\0"):
        answer = served.ask("GET", "/v1/tags", params={"cursor": text})
        assert answer.status_code == 400, text
