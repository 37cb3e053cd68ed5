"""S3 as a source, against moto's server and Ceph's gateway; no mocks."""

import itertools
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import BadFile, InvalidInput, StorageError
from catalog.values import File
from ingest.labels.class_list import ClassList
from ingest.layouts.read_layout import preset
from ingest.scan.listing_diff import compare
from ingest.scan.pair_frames import pair_frames
from ingest.scan.read_frame import frame_record, read_frame
from ingest.sources.local_folder import LocalFolder
from ingest.sources.object_file import number_of
from ingest.sources.s3 import s3_listing
from ingest.sources.s3.s3_bucket import S3Address, S3Bucket
from ingest.sources.s3.s3_source import S3Folder
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions
from tests.ingest.s3_server import S3Server, breaking_proxy, ceph, moto
from tests.needed_programs import needs

pytestmark = pytest.mark.wide

A2D2 = preset("a2d2")
PLAIN_KEYS = [
    "a b.png", "a+b", "a%20b", "a%b", "a-b", "a/x", "a/ü", "日本/x", "c#d?e", "*&=;:@$,!'()",
    "q[1]{2}^~`|", "e\u0301", "\U0001f697.png",
]  # fmt: skip
ODD_KEYS = ["/lead", "w//b", "w/./c", "w/../d", "w/tab\tx", "w/line\nx", "w/after"]


@pytest.fixture(params=[moto, pytest.param(ceph, marks=pytest.mark.ceph)], ids=["moto", "ceph"])
def server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> S3Server:
    """Each real server, signed in."""
    start: Callable[[], S3Server] = request.param
    running = start()
    running.sign_in(monkeypatch, tmp_path)
    return running


@pytest.fixture
def ceph_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3Server:
    """Ceph's gateway, signed in."""
    running = ceph()
    running.sign_in(monkeypatch, tmp_path)
    return running


def open_folder(server: S3Server, bucket: str, prefix: str = "", **options: Any) -> S3Folder:
    """A prefix of a server's bucket."""
    return S3Folder(
        f"s3://{bucket}/{prefix}", SourceOptions(endpoint_url=server.endpoint, **options)
    )


def put(server: S3Server, bucket: str, keys: list[str]) -> None:
    """Objects that hold their own key."""
    client = server.client()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: client.put_object(Bucket=bucket, Key=k, Body=k.encode()), keys))


def class_pixels(files: SourceFiles, palette: ClassList) -> dict[str, dict[str, int]]:
    """What a scan counts: the pixels per class of every frame, by its image's key."""
    counted: dict[str, dict[str, int]] = {}
    for scene in pair_frames(compare(files.list(), [], A2D2.parse), A2D2):
        for frame in scene.frames:
            count = read_frame(files, frame, palette)
            record = frame_record(frame, count, palette, A2D2)
            assert record is not None, count.problems
            counted[record.image] = dict(record.class_pixels)
    return counted


def test_sample_frames_read_as_from_a_folder(
    server: S3Server, sample_root: Path, palette: ClassList
) -> None:
    """Keys, sizes and class pixels of the sample frames are the same on S3 and in a folder."""
    bucket = server.new_bucket("sample")
    server.put_folder(bucket, sample_root, "some/where/")
    local, remote = LocalFolder(sample_root), open_folder(server, bucket, "some/where")
    here = {file.key: file.size for file in local.list()}
    assert {file.key: file.size for file in remote.list()} == here
    assert remote.read("cams_lidars.json") == local.read("cams_lidars.json")
    assert class_pixels(remote, palette) == class_pixels(local, palette)


def test_any_character_of_a_key_survives(server: S3Server) -> None:
    """Blanks, plus, percent, unicode: listed as stored, in byte order, and readable."""
    bucket = server.new_bucket("characters")
    put(server, bucket, [f"root/{key}" for key in PLAIN_KEYS])
    folder = open_folder(server, bucket, "root")
    assert [file.key for file in folder.list()] == sorted(PLAIN_KEYS, key=str.encode)
    assert all(folder.read(key) == f"root/{key}".encode() for key in PLAIN_KEYS)


@pytest.mark.ceph
def test_keys_that_obstore_cannot_name_survive(ceph_server: S3Server) -> None:
    """Empty and dot segments, control characters, leading slash: listed and read through boto3."""
    bucket = ceph_server.new_bucket("odd-keys")
    keys = ODD_KEYS + PLAIN_KEYS
    put(ceph_server, bucket, keys)
    folder = open_folder(ceph_server, bucket)
    assert [file.key for file in folder.list()] == sorted(keys, key=str.encode)
    assert all(folder.read(key) == key.encode() for key in keys)
    assert folder.read_range("w//b", 1, 2) == b"//"
    assert folder.read_range("w//b", 99, 2) == b""


def test_folder_markers_are_no_files(server: S3Server) -> None:
    """An object "a/" of no bytes is skipped; an empty file is not, nor one beside its marker."""
    bucket = server.new_bucket("markers")
    client = server.client()
    deep = [f"a/1/2/3/{key}" for key in ("", "4/", "both", "both-x", "both/", "both/x", "empty")]
    for key in ("", "a/", "a/x", "b/", "both", "both/", "both/x", "empty", *deep):
        client.put_object(Bucket=bucket, Key=f"p/{key}", Body=b"")
    listed = [file.key for file in open_folder(server, bucket, "p").list()]
    assert listed == [
        *(f"a/1/2/3/{key}" for key in ("both", "both-x", "both/x", "empty")),
        *("a/x", "both", "both/x", "empty"),
    ]


def test_prefix_is_a_folder(server: S3Server) -> None:
    """s3://bucket/a holds a/x and not ab; an empty prefix says so."""
    bucket = server.new_bucket("prefixes")
    put(server, bucket, ["a/x", "ab", "a-b/x"])
    assert [file.key for file in open_folder(server, bucket, "a").list()] == ["x"]
    with pytest.raises(StorageError, match="no object below it"):
        open_folder(server, bucket, "nothing")


def test_long_listing_in_pages_and_shards(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,210 keys in folders of unequal depth come once each, in byte order, several at a time."""
    bucket = server.new_bucket("long")
    many = 1_100 if server is moto() else 2_600  # moto takes 3 ms to store one
    keys = [f"s/scene{n % 7}/cam_{n % 3}/{n:06d}.png" for n in range(2 * many - 1_100)]
    keys += [f"s/scene0/{n:06d}.png" for n in range(1_100)] + [f"s/loose{n}" for n in range(10)]
    put(server, bucket, keys)
    # None of the first seven begins before the seventh is there: broken where they come in turn.
    met = threading.Barrier(7)
    numbers = itertools.count()
    fill = s3_listing._Shard._fill

    def together(shard: Any) -> None:
        if next(numbers) < 7:
            with suppress(threading.BrokenBarrierError):  # told below, by the barrier
                met.wait(timeout=300)
        fill(shard)

    monkeypatch.setattr(s3_listing._Shard, "_fill", together)
    listed = [file.key for file in open_folder(server, bucket, "s").list()]
    assert listed == sorted(key[2:] for key in keys)
    assert next(numbers) > 7
    assert not met.broken


def test_listing_can_be_left(server: S3Server) -> None:
    """A listing that nobody reads to its end leaves no thread behind."""
    bucket = server.new_bucket("left")
    put(server, bucket, [f"s{n % 5}/{n}" for n in range(50)])
    listing = open_folder(server, bucket).list()
    assert len(list(islice(listing, 3))) == 3
    listing.close()  # type: ignore[attr-defined]
    until = time.monotonic() + 60
    while time.monotonic() < until and any(t.name == "list-s3" for t in threading.enumerate()):
        time.sleep(0.05)
    assert not any(t.name == "list-s3" for t in threading.enumerate())


def test_rows_of_a_listing(server: S3Server) -> None:
    """Size, time (naive UTC) and a stable 63-bit number come from the listing."""
    bucket = server.new_bucket("rows")
    put(server, bucket, ["a"])
    (file,) = open_folder(server, bucket).list()
    assert (file.size, file.inode, file.size_consumed) == (1, number_of("a"), 1)
    assert 0 <= file.inode < 2**63
    assert file.mtime.tzinfo is None
    assert abs((file.mtime - _now()).total_seconds()) < 120
    assert vars_of(file)["etag"] == "0cc175b9c0f1b6a831c399e269772661"  # MD5 of "a"


def _now() -> Any:
    from catalog.values import now

    return now()


def vars_of(file: File) -> dict[str, Any]:
    """A row's fields."""
    return {name: getattr(file, name) for name in File.__dataclass_fields__}


def test_ranges(server: S3Server) -> None:
    """A range gives what lies there: less at the end, nothing beyond it."""
    bucket = server.new_bucket("ranges")
    put(server, bucket, ["0123456789"])
    folder = open_folder(server, bucket)
    assert folder.read_range("0123456789", 2, 3) == b"234"
    assert folder.read_range("0123456789", 8, 100) == b"89"
    assert folder.read_range("0123456789", 10, 5) == b""
    assert folder.read_range("0123456789", 3, 0) == b""


def test_too_large_an_object_is_not_read(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on sizes holds before the bytes are moved."""
    bucket = server.new_bucket("large")
    put(server, bucket, ["0123456789"])
    monkeypatch.setattr("ingest.sources.s3.s3_source.MAX_FILE_BYTES", 9)
    with pytest.raises(BadFile, match="has 10 bytes; at most 9 are read"):
        open_folder(server, bucket).read("0123456789")


def test_object_that_vanishes_between_list_and_read(server: S3Server) -> None:
    """A listed object that was deleted is a bad file, and the source goes on."""
    bucket = server.new_bucket("vanish")
    put(server, bucket, ["a", "b"])
    folder = open_folder(server, bucket)
    listing = list(folder.list())
    server.client().delete_object(Bucket=bucket, Key="a")
    with pytest.raises(BadFile, match="vanished") as caught:
        folder.read(listing[0].key)
    assert caught.value.file == "a"
    with pytest.raises(BadFile, match="vanished"):
        folder.read_range("a", 0, 1)
    assert folder.read("b") == b"b"


def test_missing_bucket(server: S3Server) -> None:
    """A bucket that is not there is named in one line."""
    with pytest.raises(StorageError, match=r"^s3://nowhere: no such bucket; .*endpoint$"):
        open_folder(server, "nowhere")


@pytest.mark.ceph
def test_wrong_keys_are_told_apart(ceph_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong secret and unknown access key each get their own message, and neither shows a key."""
    bucket = ceph_server.new_bucket("keys")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(StorageError, match="secret key is wrong") as caught:
        open_folder(ceph_server, bucket)
    assert "wrong-secret" not in str(caught.value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWN")
    with pytest.raises(StorageError, match="does not know this access key") as caught:
        open_folder(ceph_server, bucket)
    assert "AKIAUNKNOWN" not in str(caught.value)


@pytest.mark.ceph
def test_keys_revoked_during_a_scan_stop_it(
    ceph_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused credentials are no fault of a file: read raises StorageError, not BadFile."""
    bucket = ceph_server.new_bucket("revoked")
    put(ceph_server, bucket, ["a"])
    monkeypatch.setattr(
        "ingest.sources.s3.s3_source.S3Bucket.page", lambda *a, **k: ([], [], False)
    )
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    folder = open_folder(ceph_server, bucket)
    with pytest.raises(StorageError, match="secret key is wrong"):
        folder.read("a")


@pytest.mark.ceph
def test_anonymous_access(ceph_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public bucket is listed and read unsigned; a private one says what to do."""
    client = ceph_server.client()
    public, private = ceph_server.new_bucket("public"), ceph_server.new_bucket("private")
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*",
                       "Action": ["s3:ListBucket", "s3:GetObject"],
                       "Resource": [f"arn:aws:s3:::{public}", f"arn:aws:s3:::{public}/*"]}],
    }  # fmt: skip
    client.put_bucket_policy(Bucket=public, Policy=json.dumps(policy))
    put(ceph_server, public, ["a/x"])
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    folder = open_folder(ceph_server, public, anonymous=True)
    assert [folder.read(file.key) for file in folder.list()] == [b"a/x"]
    with pytest.raises(StorageError, match="without signing in; give a profile or keys"):
        open_folder(ceph_server, private, anonymous=True)


@pytest.mark.ceph
def test_one_object_that_may_not_be_read(
    ceph_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Denied one object, a scan goes on with the others: it is a bad file."""
    bucket = ceph_server.new_bucket("half-public")
    client = ceph_server.client()
    client.put_bucket_acl(Bucket=bucket, ACL="public-read")
    put(ceph_server, bucket, ["secret"])
    client.put_object(Bucket=bucket, Key="open", Body=b"open", ACL="public-read")
    folder = open_folder(ceph_server, bucket, anonymous=True)
    with pytest.raises(BadFile, match="access denied"):
        folder.read("secret")
    assert folder.read("open") == b"open"


def test_profile(server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys come from a named profile; an unknown one and none at all are clear errors."""
    bucket = server.new_bucket("profiles")
    put(server, bucket, ["a"])
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "credentials").write_text(
        f"[cos]\naws_access_key_id={server.access_key}\naws_secret_access_key={server.secret_key}\n"
    )
    assert open_folder(server, bucket, profile="cos").read("a") == b"a"
    with pytest.raises(InvalidInput, match="profile 'nobody' is not in"):
        open_folder(server, bucket, profile="nobody")
    with pytest.raises(StorageError, match="no credentials found; set AWS_ACCESS_KEY_ID"):
        open_folder(server, bucket)


def test_endpoint_given_wins_over_the_environment(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS_ENDPOINT_URL_S3 of someone's shell does not redirect a source."""
    bucket = server.new_bucket("endpoints")
    put(server, bucket, ["a"])
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    folder = open_folder(server, bucket)
    assert [folder.read(file.key) for file in folder.list()] == [b"a"]


def test_dropped_connections_are_tried_again(server: S3Server) -> None:
    """With two of three new connections dropped or cut, everything still arrives whole."""
    bucket = server.new_bucket("drops")
    client = server.client()
    body = bytes(range(256)) * 200
    for number in range(20):
        client.put_object(Bucket=bucket, Key=f"{number:02d}", Body=body)
    faults = ("", "drop", "cut")
    with breaking_proxy(server.endpoint, lambda n: faults[n % 3]) as proxy:
        folder = S3Folder(f"s3://{bucket}", SourceOptions(endpoint_url=proxy.endpoint))
        keys = [file.key for file in folder.list()]
        with ThreadPoolExecutor(8) as pool:
            assert all(content == body for content in pool.map(folder.read, keys))
        assert len(keys) == 20
        assert proxy.connections > 3


def test_server_that_falls_silent_is_given_up(server: S3Server) -> None:
    """Stalled connections end in one clear error within the time allowed."""
    bucket = server.new_bucket("silent")
    put(server, bucket, ["a"])
    silent = threading.Event()
    with breaking_proxy(server.endpoint, lambda n: "stall" if silent.is_set() else "") as proxy:
        folder = S3Folder(f"s3://{bucket}", SourceOptions(endpoint_url=proxy.endpoint))
        silent.set()
        folder = _fresh(folder, SourceOptions(endpoint_url=proxy.endpoint, give_up_after=2))
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"did not answer within 2 s|cannot be reached"):
            folder.read("a")
        assert time.monotonic() - began < 45  # not the minute that is usual


def _fresh(folder: S3Folder, options: SourceOptions) -> S3Folder:
    """The same source with no connection open."""
    folder.bucket = type(folder.bucket)(folder.bucket.name, options)
    return folder


def test_unreachable_endpoint() -> None:
    """Nobody listens: said in one line, in bounded time."""
    options = SourceOptions(endpoint_url="http://127.0.0.1:9", anonymous=True, give_up_after=2)
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"127.0.0.1:9 cannot be reached; check the endpoint"):
        S3Folder("s3://bucket", options)
    assert time.monotonic() - began < 45


def in_the_way(address: str, **options: Any) -> str:
    """What is said of an endpoint that cannot be asked: by a listing and by a read alike."""
    asked = SourceOptions(endpoint_url=address, anonymous=True, give_up_after=1, **options)
    bucket = S3Bucket("bucket", asked)
    said = set()
    key = "certificate/WRONG_VERSION_NUMBER.png"
    for ask in (lambda: bucket.page(key), lambda: bucket.read(key, key, 10)):
        with pytest.raises(StorageError) as caught:
            ask()
        said.add(str(caught.value).partition(": ")[2])
    assert len(said) == 1, said
    (reason,) = said
    return reason


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_wrong_scheme_is_said(tmp_path: Path) -> None:
    """https:// of a server of plain HTTP blames no certificate; http:// of one of TLS is said."""
    endpoint = moto().endpoint
    secure = endpoint.replace("http://", "https://")
    assert in_the_way(secure) == (
        f"{secure} does not speak TLS; if it speaks plain HTTP, give {endpoint}"
    )
    _, certificate, key = make_certificates(tmp_path)
    plain = moto(certificate, key).endpoint.replace("https://", "http://")
    assert in_the_way(plain) == (
        f"{plain} ends connections without an answer; if it speaks TLS, give "
        + plain.replace("http://", "https://")
    )


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_of_the_environment_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its variable, without its password; the other scheme's is none, nor is one of NO_PROXY."""
    for name in ("HTTP", "HTTPS", "ALL", "NO"):
        monkeypatch.delenv(f"{name}_PROXY", raising=False)
        monkeypatch.delenv(f"{name.lower()}_proxy", raising=False)
    name = f"{scheme.upper()}_PROXY"
    monkeypatch.setenv(name, "http://anna:secret@127.0.0.1:9")
    address, other = f"{scheme}://127.0.0.1:8", "https" if scheme == "http" else "http"
    reached = "cannot be reached"
    assert in_the_way(address) == (
        f"{address} {reached} through the proxy 127.0.0.1:9 ({name}); check the endpoint and the "
        "network"
    )
    assert "proxy" not in in_the_way(f"{other}://127.0.0.1:8")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert "proxy" not in in_the_way(address)


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority's certificate, and a server's for 127.0.0.1 with its key."""
    needs("openssl")
    authority, certificate, key = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    for command in (
        [*new, "-subj", "/CN=Test", "-out", authority, "-keyout", folder / "ca.key"],
        [*new, "-subj", "/CN=127.0.0.1", "-out", certificate, "-keyout", key,
         "-CA", authority, "-CAkey", folder / "ca.key",
         "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"],
    ):  # fmt: skip
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return authority, certificate, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_certificates_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An unknown authority is refused with what to do; given as CA bundle it is trusted."""
    authority, certificate, key = make_certificates(tmp_path)
    server = moto(certificate, key)
    server.sign_in(monkeypatch, tmp_path)
    with pytest.raises(StorageError, match="is not trusted; give its authority as CA bundle"):
        open_folder(server, "tls")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))  # for the test's own client
    bucket = server.new_bucket("tls")
    put(server, bucket, ["a"])
    monkeypatch.delenv("AWS_CA_BUNDLE")
    for options in ({"ca_bundle": str(authority)}, {"verify_tls": False}):
        folder = open_folder(server, bucket, **options)
        assert [folder.read(file.key) for file in folder.list()] == [b"a"]
    with pytest.raises(InvalidInput, match=r"CA bundle .*no such file"):
        open_folder(server, bucket, ca_bundle=str(tmp_path / "none.pem"))


class ElsewhereHandler(BaseHTTPRequestHandler):
    """Answers as AWS does for a bucket of another region (no server at hand has regions)."""

    def do_GET(self) -> None:
        """The redirect without Location that AWS documents."""
        body = b"<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>"
        self.send_response(301)
        self.send_header("x-amz-bucket-region", "eu-central-1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 (http.server's name)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


def test_wrong_region() -> None:
    """A bucket of another region is said to be one, by boto3's way and by obstore's."""
    with ThreadingHTTPServer(("127.0.0.1", 0), ElsewhereHandler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        options = SourceOptions(
            endpoint_url=f"http://127.0.0.1:{http.server_port}", anonymous=True, region="us-west-2"
        )
        with pytest.raises(StorageError, match="lies in another region; give its region"):
            S3Folder("s3://bucket", options)
        with pytest.raises(StorageError, match="lies in another region; give its region"):
            S3Bucket("bucket", options).read("key", "key", 10)
        http.shutdown()


@pytest.mark.parametrize("uri", ["s3://", "s3:///x", "s3://key:secret@bucket/x", "s4://b", "s3:b"])
def test_uris_that_are_none(uri: str) -> None:
    """What is no s3://bucket/prefix is refused."""
    with pytest.raises(InvalidInput):
        S3Address.parse(uri)


def test_uri_is_taken_as_it_stands() -> None:
    """Percent signs, question marks and hashes belong to the key."""
    assert S3Address.parse("s3://b/a%20b?c#d/e") == S3Address("b", "a%20b?c#d/e")


def test_options_survive_json() -> None:
    """to_json and from_json are inverse; unknown names and wrong types are refused."""
    options = SourceOptions(endpoint_url="https://cos", profile="p", verify_tls=False)
    assert SourceOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert SourceOptions().to_json() == {}
    assert SourceOptions.from_json({"give_up_after": 5}).give_up_after == 5
    with pytest.raises(InvalidInput, match="'endpoint' is unknown"):
        SourceOptions.from_json({"endpoint": "x"})
    with pytest.raises(InvalidInput, match="expected a bool"):
        SourceOptions.from_json({"anonymous": "yes"})


@pytest.mark.parametrize(
    "options",
    [{"endpoint_url": "cos.example"}, {"endpoint_url": "https://key:secret@host"},
     {"anonymous": True, "profile": "p"}, {"give_up_after": 0.0}],
)  # fmt: skip
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    """Contradictions and passwords in URLs are refused, without repeating the password."""
    with pytest.raises(InvalidInput) as caught:
        SourceOptions(**options)
    assert "secret" not in str(caught.value)
