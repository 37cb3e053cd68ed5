"""The audit log's entries of commands on a home."""

import json
from pathlib import Path

import httpx
import pytest

from api.cli import audited
from api.cli.main import _COMMANDS, _Commands
from tests.api.servers import framesift, serving, several, wait_until
from tests.ingest.scene_folders import make_tree


@pytest.mark.wide
def test_a_change_has_one_entry(home: Path, tmp_path: Path) -> None:
    """Commands that change a home are noted with their words, failed ones too; readers are not."""
    more = make_tree(tmp_path / "more")
    commands = [
        ["dataset", "create", "city", "--range", "car=1:", "--json"],
        ["dataset", "create", "city", "--where", "nosuch = 1"],
        ["dataset", "list"],
        ["select", "--range", "car=1:"],
        ["select", "--range", "car=1:", "--save", "cars"],
        ["tags", "add", "mood", "--json"],
        ["tags", "remove", "mood"],
        ["source", "add", "more", str(more), "--platform", "NFS"],
        ["ingest", "more", "--json"],
        ["ingest", "more", "--errors"],
        ["source", "remove", "more", "--yes"],
        ["webhook", "add", "hook", "https://hooks.example.org/secret-path"],
        ["run", "city", "--command", "echo secret-word", "--dry-run"],
        ["compact"],
        ["catalog", "check"],
        ["cache", "limit"],
        ["cache", "limit", "--hard", "2GB"],
        ["dataset", "remove", "city"],
        ["audit", "--json"],
    ]
    *_, (status, listed, _) = several(home, *commands)
    assert status == 0
    entries = [(one["what"], one["target"], one["outcome"]) for one in json.loads(listed)]
    assert entries[::-1] == [
        ("dataset create", "city --range car=1:", "done"),
        ("dataset create", "city --where nosuch = 1", "failed"),
        ("select", "--range car=1: --save cars", "done"),
        ("tags add", "mood", "done"),
        ("tags remove", "mood", "done"),
        ("source add", f"more {more} --platform NFS", "done"),
        ("ingest", "more", "done"),
        ("source remove", "more --yes", "done"),
        ("webhook add", "hook", "failed"),
        ("compact", "", "done"),
        ("cache limit", "--hard 2GB", "done"),
        ("dataset remove", "city", "done"),
    ]
    assert "secret" not in listed


@pytest.mark.wide
def test_a_job_of_a_request_has_the_entry_of_the_request(home: Path) -> None:
    """A server's scan runs the command ingest on its home: the log has the request alone."""
    with serving(home) as (url, _):
        job = httpx.post(f"{url}/v1/scans", json={"source": "a2d2"}).raise_for_status().json()
        at = f"{url}/v1/jobs/{job['name']}"
        wait_until(lambda: httpx.get(at).json()["state"] in ("done", "failed"))
        assert httpx.get(at).json()["state"] == "done"
        added = framesift(home, "tags", "add", "mood", "--server", url)
        assert added.returncode == 0, added.stderr
        entries = httpx.get(f"{url}/v1/audit").json()["entries"]
    assert [(one["what"], one["target"]) for one in entries] == [
        ("POST", "/v1/tags"),
        ("POST", "/v1/scans"),
    ]


def test_every_name_is_a_command() -> None:
    """A command that is renamed keeps its entries."""
    group = _Commands(name="framesift")
    names = set()
    for name in _COMMANDS:
        command = group.get_command(None, name)
        below = getattr(command, "commands", None)
        names |= {name} if below is None else {f"{name} {word}" for word in below}
    assert names > audited._CHANGING
