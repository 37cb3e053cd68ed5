"""Sources whose S3 endpoint was named over REST: their requests go there and nowhere else."""

import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from catalog.errors import StorageError
from ingest.sources import endpoint_proxy
from ingest.sources.endpoint_proxy import ENDPOINT, PUBLIC, way_to
from ingest.sources.s3.s3_bucket import S3Bucket
from ingest.sources.s3.s3_source import S3Folder
from ingest.sources.source_options import SourceOptions
from tests.ingest.redirecting_server import SECRET, redirecting
from tests.ingest.s3_server import moto
from tests.ingest.test_s3_source import make_certificates


def options(endpoint: str, reach: str, **more: Any) -> SourceOptions:
    """An endpoint that somebody named over REST."""
    return SourceOptions(
        endpoint_url=endpoint, anonymous=True, region="r", reach=reach, give_up_after=2, **more
    )


@pytest.mark.wide
def test_a_redirect_is_not_followed() -> None:
    """To another port or host, by http or https: nothing is sent there, the error says why."""
    with redirecting() as inside, redirecting() as named:
        bucket = S3Bucket("bucket", options(named.endpoint, ENDPOINT))
        assert bucket.read("a.csv", "a.csv", 100) == SECRET
        for target in (inside.endpoint, inside.endpoint.replace("http:", "https:")):
            named.target = target
            with pytest.raises(StorageError, match="redirects to another server") as caught:
                bucket.read("a.csv", "a.csv", 100)
            assert "swordfish" not in str(caught.value)
        assert inside.asked == []
        named.target = ""
        assert bucket.read("a.csv", "a.csv", 100) == SECRET


def test_a_name_that_stands_for_another_address_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that is connected to is the one that was checked: at every connection."""
    asked_names = []
    with redirecting() as inside:
        port = inside.server_port
        real = socket.getaddrinfo

        def resolve(host: str, *rest: Any, **more: Any) -> Any:
            if host != "rebinding.example":
                return real(host, *rest, **more)
            asked_names.append(host)
            return real("127.0.0.1", *rest, **more)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        endpoint = f"http://rebinding.example:{port}"
        with pytest.raises(StorageError, match="an address inside this server's own network"):
            S3Folder("s3://bucket", options(endpoint, PUBLIC))
        bucket = S3Bucket("bucket", options(endpoint, PUBLIC))
        with pytest.raises(StorageError, match="an address inside this server's own network"):
            bucket.read("a.csv", "a.csv", 100)
        assert inside.asked == []
        assert len(asked_names) >= 2
        assert S3Bucket("bucket", options(endpoint, ENDPOINT)).read("a.csv", "a", 99) == SECRET


@pytest.mark.parametrize("order", [["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"]])
def test_a_name_of_a_public_and_an_inner_address(
    monkeypatch: pytest.MonkeyPatch, order: list[str]
) -> None:
    """It is refused before anything is sent, whichever address comes first."""
    connected: list[Any] = []
    with redirecting() as inside:
        port = inside.server_port
        real, connect = socket.getaddrinfo, socket.socket.connect

        def resolve(host: str, *rest: Any, **more: Any) -> Any:
            if host != "two.example":
                return real(host, *rest, **more)
            return [(*real(address, port)[0][:4], (address, port)) for address in order]

        def noted(own: socket.socket, address: Any) -> None:
            if address[0] == "8.8.8.8":
                connected.append(address)
                raise TimeoutError("does not answer")
            connect(own, address)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(socket.socket, "connect", noted)
        bucket = S3Bucket("bucket", options(f"http://two.example:{port}", PUBLIC))
        with pytest.raises(StorageError, match="an address inside this server's own network"):
            bucket.read("a.csv", "a.csv", 100)
        assert (inside.asked, connected) == ([], [])


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_objects_come_through_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Listings, objects and ranges, by http and https, whatever proxies the environment names."""
    authority, certificate, key = make_certificates(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    for server, ca_bundle in ((moto(), ""), (moto(certificate, key), str(authority))):
        server.sign_in(monkeypatch, tmp_path)
        with monkeypatch.context() as own:
            own.delenv("HTTPS_PROXY")
            own.setenv("AWS_CA_BUNDLE", str(authority))
            bucket = server.new_bucket("endpoint")
            content = bytes(range(256)) * 4_000
            server.client().put_object(Bucket=bucket, Key="a/b.bin", Body=content)
        folder = S3Folder(
            f"s3://{bucket}",
            SourceOptions(endpoint_url=server.endpoint, reach=ENDPOINT, ca_bundle=ca_bundle),
        )
        assert [file.key for file in folder.list()] == ["a/b.bin"]
        assert folder.read("a/b.bin") == content
        assert folder.read_range("a/b.bin", 100, 50) == content[100:150]
        assert urlsplit(server.endpoint).port in _ports()


def _ports() -> set[int]:
    """Of the endpoints that this process's proxy has led to."""
    return {way.port for proxy in endpoint_proxy._proxies.values() for way in proxy.ways.values()}


def test_other_users_of_the_machine_cannot_use_it() -> None:
    """A client shows the token; a request for another server is refused with it, too."""
    way, url = way_to("http://127.0.0.1:9", ENDPOINT)
    port = urlsplit(url).port
    for line, status in (
        ("", b"407"),
        ("Proxy-Authorization: Basic bm86eA==\r\n", b"407"),
    ):
        with socket.create_connection(("127.0.0.1", port or 0), 60) as client:
            client.sendall(f"CONNECT 127.0.0.1:9 HTTP/1.1\r\n{line}\r\n".encode())
            assert status in client.recv(100)
    assert way.token in url
