"""Messages say where to look, for whoever reads them: over REST, on a command line, in Python."""

from pathlib import Path

import httpx2 as httpx
import pytest

from framesift import connect
from tests.api.servers import framesift, serving
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make


def _detail(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return str(answer.json()["detail"])


def test_what_there_is_not_says_what_lists_it(server: str) -> None:
    """Routes and commands both, where both can."""
    get = {
        "policies/nosuch": "framesift policy list, GET /v1/policies and GET /policyengine",
        "jobs/none/events": "framesift jobs list and GET /v1/jobs list them",
        "models/none": "framesift models list and GET /v1/models list them",
        "frames?at=99999": "framesift catalog log, on the server's machine, lists them",
    }
    for path, words in get.items():
        assert words in _detail(httpx.get(f"{server}/v1/{path}")), path


def test_a_version_that_there_is_not(home: Path) -> None:
    """The dataset is there; its versions are listed. And a model is no job to who names a model."""
    make(open_home(home))
    with serving(home) as (url, _):
        detail = _detail(httpx.get(f"{url}/v1/datasets/streets@9"))
        assert detail == (
            "no dataset named 'streets@9': 'streets' has no such version, there are 1"
        )
        assert _detail(httpx.get(f"{url}/v1/datasets/nope@9")).endswith("known: streets")
        request = {"kind": "validate", "model": "nosuch", "dataset": "streets"}
        answer = httpx.post(f"{url}/v1/jobs", json=request)
        assert answer.status_code == 404
        assert _detail(answer).startswith("no model named 'nosuch': expected the name of a train")
        run = framesift(home, "--server", url, "validate", "nosuch", "streets")
        assert run.stderr.startswith("error: no model named 'nosuch'")


@pytest.mark.wide
def test_commands_say_that_nothing_was_to_be_done(home: Path, tmp_path: Path) -> None:
    """A job that had ended, no policy whose time has come, no token to forget."""
    make(open_home(home))
    with serving(home) as (server, _), connect(server) as client:
        job = client.datasets.get("streets").stage().wait(progress=False).name
        run = framesift(home, "--server", server, "jobs", "cancel", job)
        assert (run.returncode, run.stdout) == (0, f"job {job} had ended already: done\n")
    assert framesift(home, "jobs", "cancel", job).stdout == run.stdout
    own = {"FRAMESIFT_CONFIG": str(tmp_path / "config")}
    url = "http://127.0.0.1:8008"
    gone = framesift(home, "logout", url, variables=own)
    assert gone.stdout == f"no token is kept for {url}\n"
    (tmp_path / "config").mkdir(mode=0o700, exist_ok=True)
    (tmp_path / "config" / "tokens.json").write_text(f'{{"{url}": "fs_x"}}')
    (tmp_path / "config" / "tokens.json").chmod(0o600)
    assert framesift(home, "logout", url, variables=own).stdout == f"forgot the token for {url}\n"
    assert framesift(home, "logout", url, variables=own).stdout == gone.stdout
