"""Two real OpenID providers: PyPI's oidc-provider-mock, and npm's certified oidc-provider."""

import hashlib
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

CLIENT_ID, SECRET = "framesift", "a secret: of /framesift"
GROUPS = {
    "anna": ["perception"], "marta": ["munich"], "otto": ["canteen"],
    "ines": ["perception", "admins"],
}  # fmt: skip
"""Groups of the users that a provider knows; npm/provider.mjs has the same."""

TABLE = """
[[groups]]
group = "perception"
roles = ["dataadmin"]
[[groups]]
group = "admins"
roles = ["admin"]
[[groups]]
group = "munich"
roles = ["collectionadmin"]
collections = ["munich", "missing"]
[[groups]]
group = "src"
roles = ["datauser"]
collections = ["src"]
"""

_NPM = Path(__file__).with_name("npm")
_CACHE = Path.home() / ".cache" / "framesift-tests"


@dataclass(frozen=True)
class Running:
    """A provider that listens."""

    url: str
    log_in: Callable[[httpx.Client, str, str], str]
    """URL that a browser is led back to, which a user logged in on a page of the provider."""


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def mock() -> Iterator[Running]:
    """PyPI's, in a thread: its access tokens are no JWTs."""
    from oidc_provider_mock import User, run_server_in_thread

    users = [User(sub=f"id-of-{name}", claims=claims_of(name)) for name in GROUPS]
    with run_server_in_thread(user_claims=users) as server:
        yield Running(f"http://127.0.0.1:{server.server_port}", _log_in_at_mock)


def claims_of(name: str) -> dict[str, object]:
    """Claims of a user."""
    return {"preferred_username": name, "groups": GROUPS[name]}


def _log_in_at_mock(browser: httpx.Client, url: str, name: str) -> str:
    answer = browser.post(url, data={"sub": f"id-of-{name}"})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


@contextmanager
def npm(server: str) -> Iterator[Running]:
    """npm's, as a process of Node; skips where there is none.

    Args:
        server: URL of the server that it leads back to.
    """
    node, port = shutil.which("node"), free_port()
    if node is None:
        pytest.skip("no node here: apt-get install nodejs npm")
    process = subprocess.Popen(
        [node, str(_NPM / "provider.mjs"), str(port), server],
        cwd=_installed(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "listens"
        yield Running(f"http://127.0.0.1:{port}", _log_in_at_npm)
    finally:
        process.kill()
        process.communicate()


def _installed() -> Path:
    """A folder with the package of the lock file, installed the first time."""
    lock = (_NPM / "package-lock.json").read_bytes()
    folder = _CACHE / f"oidc-provider-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not folder.exists():
        program = shutil.which("npm")
        if program is None:
            pytest.skip("no npm here: apt-get install npm")
        _CACHE.mkdir(parents=True, exist_ok=True)
        aside = _CACHE / f"oidc-provider-{free_port()}"
        shutil.copytree(_NPM, aside)
        made = subprocess.run(
            [program, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=aside, capture_output=True, text=True,
        )  # fmt: skip
        if made.returncode != 0:
            shutil.rmtree(aside)
            pytest.skip(f"npm ci: {made.stderr[-300:]}")
        aside.rename(folder)
    return folder


def _log_in_at_npm(browser: httpx.Client, url: str, name: str) -> str:
    issuer, answer = url.partition("/auth")[0], browser.get(url)
    for _ in range(20):
        if answer.is_redirect:
            url = urljoin(str(answer.url), answer.headers["location"])
            if not url.startswith(issuer):
                return url
            answer = browser.get(url)
            continue
        assert answer.status_code == 200, answer.text
        prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
        action = re.search(r'action="([^"]+)"', answer.text)
        assert prompt and action, answer.text  # noqa: PT018  # one page has both
        form = {"prompt": prompt[1], "login": name, "password": "any"}
        answer = browser.post(urljoin(str(answer.url), action[1]), data=form)
    raise AssertionError(f"the provider leads nowhere: {answer.url}")
