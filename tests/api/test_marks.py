"""Marks: values of tags given to frames by REST, the command and the client."""

import json
from pathlib import Path

import pytest

from framesift import Client
from framesift.errors import FramesiftServerError, NotFound
from tests.api.servers import framesift

pytestmark = pytest.mark.wide


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


def test_frames_that_are_not_known_to_be_bad(shared_home: Path, shared_url: str) -> None:
    """`!=` says by command and REST how many frames it leaves out, and what chooses them, too.

    A tag whose name begins alike has another value, and stays out of it.
    """
    command = ("select", "--format", "csv", "--columns", "fkey")
    with Client(shared_url) as client:
        fkeys = [frame.fkey for frame in client.frames()]
        client.tags.mark(fkeys[:1], {"look": "bad"})
        client.tags.mark(fkeys, {"look_2": "bad"})
        told = (
            f"{len(fkeys) - 1} frames have no look, so they are left out: "
            "'look not_known_to_be bad' chooses them, too"
        )
        different = {"kind": "tag", "tag": "look", "op": "!=", "value": "bad"}
        answer = client.select(condition=different)
        assert (len(answer), answer.left_out) == (0, told)
        assert answer.why_empty == f"there are no frames whose look is not 'bad'; {told}"
        for options in ([], ["--server", shared_url]):
            none = framesift(shared_home, *options, *command, "--tag", "look!=bad")
            assert none.stderr.replace("\n", " ").strip() == f"no frames: {answer.why_empty}"
            chosen = framesift(shared_home, *options, *command, "--tag", "look not_known_to_be bad")
            assert (len(chosen.stdout.splitlines()), chosen.stderr) == (len(fkeys) - 1, "")
        client.tags.mark(fkeys[1:3], {"look": "good"})
        some = framesift(shared_home, *command, "--tag", "look!=bad")
        assert len(some.stdout.splitlines()) == 2
        assert some.stderr.startswith(f"{len(fkeys) - 3} frames have no look, so they are left")
        assert client.select(condition={**different, "tag": "look_2"}).left_out == ""
        saved = framesift(shared_home, "dataset", "create", "seen", "--tag", "look!=bad")
        assert f"{len(fkeys) - 3} frames have no look, so they are left out" in saved.stdout
        assert client.datasets.get("seen")["report"]["left_out"].startswith(f"{len(fkeys) - 3} ")
        every = framesift(
            shared_home, "dataset", "create", "every", "--tag", "look not_known_to_be bad"
        )
        assert f": {len(fkeys) - 1} frames" in every.stdout
        assert "left out" not in every.stdout


def test_columns_of_an_answer_may_be_tags(shared_home: Path, shared_url: str) -> None:
    """In each format, on a home and a server, of no frames, too; unknown names are named."""
    with Client(shared_url) as client:
        fkeys = sorted(frame.fkey for frame in client.frames())
        client.tags.mark(fkeys[:2], {"haze": "3", "first-seen": "2018-08-07 12:00:00+02:00"})
        answer = client.selections.ask({"order": ["haze"], "limit": 3}, columns=["HAZE", "sky"])
        assert [frame["haze"] for frame in answer] == [3, 3, None]
        assert list(answer.frames[0])[-1] == "haze"
    wanted = ("select", "--columns", "fkey,haze", "--columns", "first-seen,mtime")
    marked = ("--tag", "haze is_not_null", "--order", "fkey")
    for options in ([], ["--server", shared_url]):
        table = framesift(shared_home, *options, *wanted, *marked, "--format", "csv-named")
        assert table.stdout.splitlines()[0] == '"fkey","haze","first-seen","mtime"', table.stderr
        # A server's times come as texts, and are quoted.
        told = [line.replace('"', "") for line in table.stdout.splitlines()[1:]]
        assert [line.rpartition(",")[0] for line in told] == [
            f"{fkey},3,2018-08-07 10:00:00" for fkey in fkeys[:2]
        ]
        body = json.loads(framesift(shared_home, *options, *wanted, *marked, "--json").stdout)
        assert [list(frame) for frame in body["frames"]] == [
            ["fkey", "haze", "first-seen", "mtime"]
        ] * 2
        shown = framesift(shared_home, *options, *wanted, *marked).stdout
        assert shown.count("2018-08-07") == 2
        none = framesift(shared_home, *options, *wanted, "--tag", "haze=9", "--format", "csv-named")
        assert none.stdout == '"fkey","haze","first-seen","mtime"\n'
        wrong = framesift(shared_home, *options, "select", "--columns", "fkey,hase")
        assert "unknown column 'hase': did you mean haze?" in wrong.stderr
        assert wrong.returncode == 1
