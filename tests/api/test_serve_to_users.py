"""framesift serve to users: the first token, other addresses than loopback, TLS."""

import re
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from cryptography import x509

import framesift as client_package
from api.server.self_signed import self_signed
from tests.api.servers import framesift, serving
from tests.pipeline.homes import FRAMES


def first_token(process: "subprocess.Popen[str]") -> str:
    """The token that a server prints behind its address."""
    assert process.stdout is not None
    assert "shown once" in process.stdout.readline()
    return process.stdout.readline().strip()


@pytest.mark.wide
def test_the_first_start_prints_a_token_once(home: Path) -> None:
    """It opens everything, makes the first user, and is not printed again."""
    with serving(home, authenticates=True) as (url, process):
        token = first_token(process)
        assert re.fullmatch(r"fs_[\w-]{43}", token)
        assert httpx.get(f"{url}/v1/classes").status_code == 401
        with client_package.connect(url, token) as client:
            assert len(client.select()) == FRAMES
        with pytest.raises(client_package.FramesiftServerError) as caught:
            client_package.connect(url, token + "x").select()
        assert caught.value.status == 401
        body = {"name": "anna", "roles": ["admin"], "password": "a sentence is a good one"}
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.post(f"{url}/v1/users", json=body, headers=headers).status_code == 201
    with serving(home, authenticates=True) as (url, process):
        answer = httpx.get(f"{url}/auth/v1/token", auth=("anna", "a sentence is a good one"))
        assert answer.status_code == 200
        process.terminate()
        rest, errors = process.communicate(timeout=300)
        assert (rest, errors) == ("", "")


def test_without_authentication_no_user_is_made(home: Path) -> None:
    """--no-auth prints no token, and everything is open."""
    with serving(home) as (url, process):
        assert httpx.get(f"{url}/v1/users").json()["users"] == []
        process.terminate()
        assert process.communicate(timeout=300) == ("", "")


def test_a_port_in_use_makes_no_user(home: Path) -> None:
    """A token that nobody was shown would be lost."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        framesift(home, "serve", "--port", str(taken.getsockname()[1]))
    assert framesift(home, "user", "list", "--json").stdout.strip() == "[]"


def test_users_make_every_address_possible(home: Path) -> None:
    """Beyond loopback with users; without TLS that is said."""
    with serving(home, "--host", "0.0.0.0", authenticates=True) as (url, process):
        port = url.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/v1/classes").status_code == 401
        process.terminate()
        _, errors = process.communicate(timeout=300)
    assert errors.startswith("warning: plain HTTP beyond this machine")
    assert errors.count("\n") == 1


def test_a_certificate_made_on_request(home: Path) -> None:
    """HTTPS that a client which trusts the file accepts by every local name; the key is ours."""
    with serving(home, "--tls-self-signed", authenticates=True) as (url, process):
        assert url.startswith("https://127.0.0.1:")
        token = first_token(process)
        trusted = ssl.create_default_context(cafile=str(home / "tls" / "cert.pem"))
        port = url.rpartition(":")[2]
        headers = {"Authorization": f"Bearer {token}"}
        for host in ("127.0.0.1", "localhost"):
            answer = httpx.get(
                f"https://{host}:{port}/auth/v1/roles", headers=headers, verify=trusted
            )
            assert answer.status_code == 200
        with pytest.raises(httpx.ConnectError, match="certificate"):
            httpx.get(f"{url}/healthz")
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/healthz")
    for name in ("cert.pem", "key.pem"):
        assert stat.S_IMODE((home / "tls" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "tls").stat().st_mode) == 0o700


def test_the_certificate_stays_as_long_as_it_fits(tmp_path: Path) -> None:
    """Clients that were told to trust it go on; another address, or damage, makes a new one."""
    certificate, key = self_signed(tmp_path / "tls", "127.0.0.1")
    first = certificate.read_bytes(), key.read_bytes()
    self_signed(tmp_path / "tls", "localhost")
    self_signed(tmp_path / "tls", "0.0.0.0")
    assert (certificate.read_bytes(), key.read_bytes()) == first
    self_signed(tmp_path / "tls", "192.0.2.5")
    certificate_before = x509.load_pem_x509_certificate(certificate.read_bytes())
    names = certificate_before.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(name) for name in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "::1", "192.0.2.5"}
    assert {"localhost", socket.gethostname()} <= set(names.get_values_for_type(x509.DNSName))
    certificate.write_bytes(b"damaged")
    self_signed(tmp_path / "tls", "127.0.0.1")
    assert x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number


def test_one_s_own_certificate(home: Path, tmp_path: Path) -> None:
    """Given by --tls-cert and --tls-key; what cannot be used is said in one line."""
    certificate, key = self_signed(tmp_path / "a", "127.0.0.1")
    other = self_signed(tmp_path / "b", "127.0.0.1")[1]
    (tmp_path / "text").write_text("no key")
    with serving(home, "--tls-cert", str(certificate), "--tls-key", str(key)) as (url, _):
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{url}/healthz", verify=trusted).status_code == 200
    cases: list[tuple[list[str | Path], str]] = [
        (["--tls-cert", certificate], "together"),
        (["--tls-key", key], "together"),
        (["--tls-cert", certificate, "--tls-key", key, "--tls-self-signed"], "alone"),
        (["--tls-cert", certificate, "--tls-key", other], "belong together"),
        (["--tls-cert", tmp_path / "text", "--tls-key", key], "cannot be used"),
        (["--tls-cert", certificate, "--tls-key", tmp_path / "none"], "No such file"),
    ]
    for files, words in cases:
        run = framesift(home, "serve", "--port", "0", "--no-auth", *files)
        assert (run.returncode, run.stdout) == (1, ""), files
        assert run.stderr.startswith("error: ")
        assert words in run.stderr
        assert run.stderr.count("\n") == 1


@pytest.mark.wide
def test_logging_in_is_what_loads_argon2(tmp_path: Path) -> None:
    """A command that needs no password starts without it; one that does pays its full costs."""
    code = """
import sys, api.cli.main
print({'argon2', 'cryptography'} & {*sys.modules})
from pathlib import Path
from catalog.accounts import users
from catalog.records.store import RecordStore
records = RecordStore(Path(sys.argv[1]))
print(users.add(records, 'anna', ['admin'], 'a sentence is a good one').password)
print(users.with_password(records, 'anna', 'a sentence is a good one').name)
print(users.with_password(records, 'anna', 'a sentence is a bad one'))
"""
    path = str(tmp_path / "records.sqlite")
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    modules, scheme, name, refused = run.stdout.splitlines()
    assert modules == "set()"
    assert scheme.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert (name, refused) == ("anna", "None")
