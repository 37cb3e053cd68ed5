"""Marks: values of tags given to frames by REST, the command and the client."""

import json
from pathlib import Path

import pytest

from framesift import Client
from framesift.errors import FramesiftServerError, NotFound
from tests.api.servers import framesift


@pytest.mark.wide
def test_the_client_and_the_command_mark_alike(
    shared_home: Path, shared_url: str, tmp_path: Path
) -> None:
    """In one commit; on a home and on a server; nothing where one of the frames is none."""
    url, home = shared_url, shared_home
    with Client(url) as client:
        fkeys = [frame.fkey for frame in client.frames()][:3]
        assert client.tags.mark(fkeys, {"quality": "bad", "seen": "2"})["imported"] == 3
        assert {client.frame(fkey)["quality"] for fkey in fkeys} == {"bad"}
        assert client.frame(fkeys[0])["seen"] == 2
        with pytest.raises(NotFound, match="nothing was marked"):
            client.tags.mark([*fkeys, "none"], {"quality": "good"})
        with pytest.raises(FramesiftServerError, match="class_pixels"):
            client.tags.mark(fkeys, {"car": "1"})
        there = framesift(tmp_path, "--server", url, "tags", "set", *fkeys[:2], "quality=")
        assert there.stdout == "set quality= on 2 frames\n", there.stderr
        assert [client.frame(fkey)["quality"] for fkey in fkeys] == [None, None, "bad"]
        here = framesift(home, "tags", "set", fkeys[0], "quality=good", "--json")
        assert json.loads(here.stdout)["imported"] == 1
        assert client.frame(fkeys[0])["quality"] == "good"
        for options in ([], ["--server", url]):
            shown = json.loads(framesift(home, *options, "show", fkeys[0], "--json").stdout)
            assert (shown["fkey"], shown["quality"]) == (fkeys[0], "good")
        opened = framesift(
            home, "--server", url, "show", fkeys[0], "--open", variables={"BROWSER": "true"}
        )
        assert opened.stdout.replace("\n", "").startswith(f"{url}/frames/local:a2d2:")
    wrong = framesift(home, "tags", "set", fkeys[0])
    assert (wrong.returncode, "TAG=VALUE" in wrong.stderr) == (1, True)
