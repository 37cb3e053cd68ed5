"""framesift demo: what it finds out first, and what it says last. `make demo` runs the whole."""

import importlib.util
import sys
from pathlib import Path

import httpx
import pytest

from api.cli.commands.demo import NEXT, demo
from catalog.errors import InvalidInput
from tests.api.servers import serving


@pytest.mark.parametrize("module", ["tensorflow", "horovod", "matplotlib"])
def test_what_is_not_installed_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Proves a machine that cannot train hears it before anything is drawn or removed."""
    monkeypatch.setitem(sys.modules, module, None)  # as Python itself notes what it may not import
    assert importlib.util.find_spec(module) is None
    file = tmp_path / "demo" / "home" / "of-an-earlier-demo"
    file.mkdir(parents=True)
    with pytest.raises(
        InvalidInput, match=rf"{module} is not installed here: 'uv sync --inexact --extra train'"
    ):
        demo(folder=tmp_path / "demo")
    assert file.is_dir()


def test_the_last_hint_works(home: Path) -> None:
    """Proves the server and the request that the demo suggests answer, and with 200."""
    serve, _, request = NEXT[-1].partition("#")
    arguments = serve.split()[2:]
    path = request.rpartition(":8008")[2]
    # The demo's server takes port 8008; here it is any that is free.
    with serving(home, *arguments, authenticates=True) as (url, _):
        answer = httpx.get(f"{url}{path}", timeout=300)
    assert answer.status_code == 200
    assert answer.json()["classes"]
