"""Places of a team's stores: how they are given, what goes wrong, and that no password shows."""

import logging
import os
import subprocess
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from api.settings import Secret, Settings
from api.workspace import Workspace
from catalog.errors import CatalogBusy, CatalogDamaged, InvalidInput, StorageError
from catalog.frames.catalog_info import info
from catalog.lake.connection import translated
from catalog.records.store import RecordStore
from catalog.storage.location import CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.storage.s3_prefix import S3Access, S3Prefix
from catalog.store import CatalogStore
from tests.api.servers import framesift
from tests.catalog.backends import new_prefix, open_at
from tests.ingest.s3_server import S3Server, ceph, free_port, moto
from tests.needed_programs import needs
from tests.postgres_server import PASSWORD, postgres
from tests.zygote import Forked

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
WRONG = "wr0ng-but-still-secret"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:hidden@h:5433/d?sslmode=require", "postgresql://u@h:5433/d"),
        ("postgres://h/d", "postgresql://h/d"),
        ("postgresql://u:hid%40den@/d?host=/run/pg", "postgresql://u@/run/pg/d"),
    ],
)
def test_a_database_shows_no_password(url: str, expected: str) -> None:
    """Text and repr of a database have everything but its password."""
    location = Postgres.parse(url)
    assert str(location) == expected
    assert "hid" not in repr(location) + location.conninfo


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hidden@h/d",
        "postgresql://u:hidden@h",
        "postgresql://u:hid/den@h:54x/d",
        "postgresql://u:hidden@h/d?nonsense=1",
        "postgresql://u@h/d?sslpassword=hidden",
        "hidden",
    ],
)
def test_an_unusable_url_is_not_repeated(url: str) -> None:
    """The error says what is expected, and nothing of what was given."""
    with pytest.raises(InvalidInput, match="PostgreSQL URL") as error:
        Postgres.parse(url)
    assert "hid" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    "uri",
    ["s3://", "s3:///x", "gs://b/p", "s3://b/../p", "s3://b/p?x=1", "s3://b//p", "s3://b/a b"],
)
def test_an_unusable_prefix(uri: str) -> None:
    """A URI that servers and clients could understand differently is refused."""
    with pytest.raises(InvalidInput, match="expected s3://bucket/prefix"):
        S3Prefix.parse(uri)


def test_prefixes_and_servers() -> None:
    """A prefix ends in one slash; a server's URL holds no password."""
    assert str(S3Prefix.parse("s3://b/p/q/")) == str(S3Prefix.parse("s3://b/p/q")) == "s3://b/p/q/"
    assert str(S3Prefix.parse("s3://b")) == "s3://b/"
    for wrong in ("ftp://h", "h:9000", "https://u:hidden@h"):
        with pytest.raises(InvalidInput) as error:
            S3Access(wrong)
        assert "hidden" not in str(error.value)
    with pytest.raises(InvalidInput, match="no such file"):
        S3Access(ca_bundle="/no/such/file")


def test_settings_name_the_places(tmp_path: Path) -> None:
    """What is unset lies in the home; paths and URLs are both understood."""
    at_home = Workspace(Settings(home=tmp_path)).catalog_location
    assert at_home == CatalogLocation.in_folder(tmp_path / "catalog")
    settings = Settings(
        home=tmp_path,
        catalog_metadata=Secret("postgresql://u:hidden@h/d"),
        catalog_data="s3://b/p",
        catalog_s3_endpoint="http://h:1",
        records=Secret(str(tmp_path / "r.sqlite")),
    )
    workspace = Workspace(settings)
    assert str(workspace.catalog_location.metadata) == "postgresql://u@h/d"
    data = S3Prefix("b", "p/", S3Access("http://h:1"))
    assert workspace.catalog_location.data == data
    assert workspace.records.location == tmp_path / "r.sqlite"
    assert "hidden" not in repr(settings) + repr(workspace.catalog_location)
    with pytest.raises(InvalidInput) as error:
        _ = Workspace(Settings(catalog_metadata=Secret("db2://u:hidden@h/d"))).catalog
    assert "hidden" not in str(error.value)


def everything_said(error: BaseException, caplog: pytest.LogCaptureFixture) -> str:
    """The message, the traceback with its causes, and what logging makes of them."""
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").error("failed", exc_info=error)
    return "".join(traceback.format_exception(error)) + caplog.text + repr(error)


def wrong_password(_folder: Path) -> CatalogLocation:
    good = postgres().new()
    return CatalogLocation(Postgres(good.conninfo, WRONG), _folder / "data")


def wrong_database(_folder: Path) -> CatalogLocation:
    return CatalogLocation(Postgres.parse(postgres().url("no_such_database")), _folder / "data")


def no_server(_folder: Path) -> CatalogLocation:
    return CatalogLocation(
        Postgres.parse(f"postgresql://u:{WRONG}@127.0.0.1:{free_port()}/d"), _folder / "data"
    )


@pytest.mark.parametrize("make", [wrong_password, wrong_database, no_server])
def test_a_server_that_refuses(
    make: Callable[[Path], CatalogLocation], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line with the server's address and its reason; the password is in no part of it."""
    location = make(tmp_path)
    assert isinstance(location.metadata, Postgres)
    for attempt in (lambda: open_at(location), lambda: RecordStore(location.metadata)):
        with pytest.raises(StorageError) as error:
            attempt()
        assert str(error.value).startswith(str(location.metadata))
        assert "\n" not in str(error.value)
        said = everything_said(error.value, caplog)
        assert WRONG not in said
        assert PASSWORD not in said


def test_a_password_that_a_foreign_message_repeats(tmp_path: Path) -> None:
    """Whatever DuckDB says, the password is cut out, and the cause that holds it dropped."""
    location = CatalogLocation(postgres().new(), tmp_path / "data")
    with pytest.raises(CatalogDamaged) as error, translated(location):
        raise duckdb.IOException(f"something about {PASSWORD} in the middle")
    assert "something about *** in the middle" in str(error.value)
    assert PASSWORD not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("case", ["no keys", "no bucket", "no server"])
def test_an_s3_server_that_refuses(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """StorageError with the prefix; no key in it."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WRONG)
    data = new_prefix(server)
    if case == "no keys":
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    elif case == "no bucket":
        data = S3Prefix("no-such-bucket", "p/", S3Access(server.endpoint))
    else:
        data = S3Prefix("b", "p/", S3Access(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(StorageError) as error:
        open_at(CatalogLocation(tmp_path / "catalog.sqlite", data))
    assert str(data) in str(error.value)
    assert "\n" not in str(error.value)
    assert WRONG not in everything_said(error.value, caplog)
    assert not (tmp_path / "catalog.sqlite").exists()


@pytest.fixture(scope="session")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> tuple[S3Server, Path]:
    """An S3 server with a certificate of its own authority, and that authority's file."""
    needs("openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key),
         "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return moto(certificate, key), certificate


def test_certificates_are_checked(
    tls_server: tuple[S3Server, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS data is read and written with the authority given, and refused without."""
    server, certificate = tls_server
    server.sign_in(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    server.client().create_bucket(Bucket="over-tls")
    monkeypatch.delenv("AWS_CA_BUNDLE")
    trusted = S3Prefix("over-tls", "p/", S3Access(server.endpoint, ca_bundle=str(certificate)))
    store = open_at(CatalogLocation(tmp_path / "catalog.sqlite", trusted))
    assert info(store).files == 0
    untrusted = S3Prefix("over-tls", "p/", S3Access(server.endpoint))
    with pytest.raises(StorageError, match="SSL peer certificate"):
        open_at(CatalogLocation(tmp_path / "catalog.sqlite", untrusted)).reading().__enter__()


KEYS_PROGRAM = """#!/bin/sh
echo x >> ASKED
cat <<END
{"Version": 1, "AccessKeyId": "a$(wc -l < ASKED)", "SecretAccessKey": "s", "SessionToken": "t",
 "Expiration": "$(date -u -d '+60 seconds' +%Y-%m-%dT%H:%M:%SZ)"}
END
"""


def test_temporary_keys_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that stays open signs with the keys of now: the profile's program is asked again."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    program = tmp_path / "keys.sh"
    request_log = tmp_path / "asked"
    program.write_text(KEYS_PROGRAM.replace("ASKED", str(request_log)))
    program.chmod(0o755)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    data = S3Prefix(new_prefix(server).bucket, "renewed/", S3Access(server.endpoint))
    store = open_at(CatalogLocation(tmp_path / "catalog.sqlite", data))
    seen = set()
    for _ in range(2):
        assert info(store).files == 0
        with store.writing("r") as connection:
            row = connection.execute(
                "SELECT secret_string FROM duckdb_secrets() WHERE name = 'catalog_s3'"
            ).fetchone()
        seen.add(str(row).partition("key_id=")[2].partition(";")[0])
    assert len(seen) == 2  # keys that expire within a minute are renewed at each use


def test_busy_across_servers_and_processes(tmp_path: Path) -> None:
    """A process that dies frees PostgreSQL's lock, and while it lives it is named."""
    database = postgres().new()
    code = (
        "import sys\nfrom catalog.storage.postgres import Postgres\n"
        "with Postgres.parse(sys.argv[1]).lock('x', 0, 'held'):\n"
        "    print('held', flush=True)\n    sys.stdin.readline()\n"
    )
    url = postgres().url(str(database.keywords["dbname"]))
    pipe = subprocess.PIPE
    with Forked(["-c", code, url], stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(CatalogBusy, match=f"process {holder.pid} on "),
            database.lock("x", 0, "b"),
        ):
            pass
        with database.lock("another", 0, "b"):
            pass
        holder.kill()
        with database.lock("x", 120, "b") as check:
            check()
    assert os.getpid() != holder.pid


def test_a_lost_lock_stops_the_commit(tmp_path: Path) -> None:
    """Where the server ended the connection that held the lock, nothing is committed."""
    location = CatalogLocation(postgres().new(), tmp_path / "data")
    store = open_at(location)
    assert isinstance(location.metadata, Postgres)
    before = store.snapshot()

    def write() -> None:
        with store.writing("r") as connection:
            connection.execute("DELETE FROM class_pixels")
            with location.metadata.connected() as other:  # type: ignore[union-attr]
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                )

    with pytest.raises(StorageError, match=r"lost .*Run it again"):
        write()
    assert store.snapshot() == before
    with store.writing("r") as connection:
        connection.execute("DELETE FROM class_pixels")


@pytest.mark.ceph
def test_on_ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL with a production S3: made, written, read; wrong keys refused and not shown."""
    server = ceph()
    server.sign_in(monkeypatch, tmp_path)
    prefix = new_prefix(server)
    location = CatalogLocation(postgres().new(), prefix)
    store = open_at(location)
    with store.writing("r") as connection:
        connection.execute("INSERT INTO class_pixels (fkey, front) VALUES ('a', 1)")
    with store.reading() as cursor:
        assert cursor.execute("SELECT * FROM t_front").fetchall() == [("a", "1")]
    assert CatalogStore(location).snapshot() == store.snapshot()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WRONG)
    wrong = replace(location, data=replace(prefix))  # which asks for the keys again
    with pytest.raises(StorageError) as error:
        info(open_at(wrong))
    assert WRONG not in "".join(traceback.format_exception(error.value))


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    """`framesift info` with a wrong password: one line, exit 1, no password."""
    database = postgres().new()
    url = postgres().url(str(database.keywords["dbname"])).replace(":p%40ss", f":{WRONG}")
    run = framesift(tmp_path, "info", variables={"FRAMESIFT_CATALOG_METADATA": url})
    assert run.returncode == 1
    assert run.stderr.startswith("error: postgresql://")
    assert run.stderr.count("\n") == 1
    assert WRONG not in run.stderr + run.stdout
