"""Keys of sources are kept encrypted."""

import multiprocessing
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from catalog.errors import InvalidInput, StorageError
from catalog.storage.s3_prefix import S3Prefix
from ingest.sources import sealed_keys
from ingest.sources.s3.s3_bucket import session_of
from ingest.sources.schemes import open_source
from ingest.sources.sealed_keys import AccessKeys, SecretKey, seal, unseal
from ingest.sources.source_options import SourceOptions
from tests.ingest.s3_server import ceph

KEYS = AccessKeys("AKIAEXAMPLE", "very/secret+key")


@pytest.fixture(autouse=True)
def key(tmp_path: Path) -> Iterator[SecretKey]:
    """Where this process's key is; as before afterwards."""
    before = sealed_keys._key
    secret = SecretKey(tmp_path / "home" / "secret.key")
    sealed_keys.use(secret)
    yield secret
    sealed_keys._key = before


def test_they_come_back_and_cannot_be_read(key: SecretKey) -> None:
    """The key's file is made for its owner alone; nothing sealed or shown holds the keys."""
    sealed = seal(KEYS)
    assert unseal(sealed) == KEYS
    assert stat.S_IMODE(key.path.stat().st_mode) == 0o600
    assert [path.name for path in key.path.parent.iterdir()] == ["secret.key"]
    assert "AKIA" not in sealed
    assert "secret+key" not in repr(KEYS)
    options = SourceOptions(sealed_keys=sealed)
    assert SourceOptions.from_json(options.to_json()) == options
    assert options.public() == {"sealed_keys": True}
    assert SourceOptions(region="eu-de").public() == {"region": "eu-de"}
    credentials = session_of(options).get_credentials()
    assert (credentials.access_key, credentials.secret_key) == (KEYS.access_key, KEYS.secret_key)


def test_a_key_that_is_given(tmp_path: Path) -> None:
    """No file is made; another key cannot read what this one sealed; none is said in the error."""
    path = tmp_path / "none"
    sealed_keys.use(SecretKey(path, Fernet.generate_key().decode()))
    sealed = seal(KEYS)
    assert unseal(sealed) == KEYS
    assert not path.exists()
    sealed_keys.use(SecretKey(path, Fernet.generate_key().decode()))
    with pytest.raises(InvalidInput, match="encrypted by another key"):
        unseal(sealed)
    sealed_keys.use(SecretKey(path, "too-short"))
    with pytest.raises(InvalidInput, match="FRAMESIFT_SECRET_KEY: is no key") as caught:
        seal(KEYS)
    assert "too-short" not in str(caught.value)


def test_a_file_that_cannot_be_used(key: SecretKey) -> None:
    """Others may read it; it is no key; it is gone; this process was told of none."""
    sealed = seal(KEYS)
    key.path.chmod(0o640)
    with pytest.raises(InvalidInput, match="chmod 600"):
        unseal(sealed)
    key.path.chmod(0o600)
    key.path.write_text("nothing")
    with pytest.raises(InvalidInput, match="is no key"):
        unseal(sealed)
    key.path.unlink()
    with pytest.raises(InvalidInput, match="is missing"):
        unseal(sealed)
    assert not key.path.exists()  # a new one would not read what the old one sealed
    sealed_keys._key = None
    with pytest.raises(InvalidInput, match="has no key to them: set FRAMESIFT_SECRET_KEY"):
        unseal(sealed)


def _seal_one(path: Path, started: "multiprocessing.synchronize.Barrier") -> str:
    sealed_keys.use(SecretKey(path))
    started.wait(600)
    return seal(KEYS)


@pytest.mark.wide
def test_two_processes_make_one_key(tmp_path: Path) -> None:
    """What either sealed is read by whoever comes later."""
    path = tmp_path / "secret.key"
    with multiprocessing.get_context("spawn").Manager() as manager:
        started = manager.Barrier(4)
        with multiprocessing.get_context("spawn").Pool(4) as pool:
            texts = pool.starmap(_seal_one, [(path, started)] * 4)
    sealed_keys.use(SecretKey(path))
    assert [unseal(text) for text in texts] == [KEYS] * 4


def test_options_that_contradict(key: SecretKey) -> None:
    """Keys, a profile, or neither."""
    with pytest.raises(InvalidInput, match="exclude each other"):
        SourceOptions(sealed_keys=seal(KEYS), profile="other")


@pytest.mark.ceph
def test_a_server_takes_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They sign, whatever the environment holds; wrong ones are refused."""
    ceph_server = ceph()
    ceph_server.sign_in(monkeypatch, tmp_path)
    bucket = ceph_server.new_bucket("sealed")
    ceph_server.client().put_object(Bucket=bucket, Key="a", Body=b"1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")

    def open_with(keys: AccessKeys) -> bytes:
        options = SourceOptions(endpoint_url=ceph_server.endpoint, sealed_keys=seal(keys))
        return open_source(f"s3://{bucket}", options).read("a")

    assert open_with(AccessKeys(ceph_server.access_key, ceph_server.secret_key)) == b"1"
    with pytest.raises(StorageError, match="secret key is wrong"):
        open_with(AccessKeys(ceph_server.access_key, "wrong"))


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("AWS_ACCESS_KEY_ID", "SECRETWORD\n", "access key"),
        ("AWS_SECRET_ACCESS_KEY", "SECRETWORD\r\n", "secret key"),
        ("AWS_SESSION_TOKEN", "SECRET\nWORD", "session token"),
    ],
)
def test_keys_that_no_header_takes_are_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, named: str
) -> None:
    """Of a source and of the catalog: the libraries' errors would show the header whole."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "plain")
    session_of(SourceOptions())
    assert S3Prefix.parse("s3://bucket/x").keys().token == "plain"
    monkeypatch.setenv(variable, value)
    session_of(SourceOptions(anonymous=True))
    for ask in (lambda: session_of(SourceOptions()), S3Prefix.parse("s3://bucket/x").keys):
        with pytest.raises(InvalidInput, match=f"the S3 {named} holds a line end") as refused:
            ask()
        assert "WORD" not in str(refused.value)
    with pytest.raises(InvalidInput, match="the S3 secret key holds a line end"):
        session_of(SourceOptions(sealed_keys=seal(AccessKeys("plain", "SECRETWORD\n"))))
