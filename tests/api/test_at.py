"""An old snapshot asked by command, server and client; a dataset asked again as it was."""

import json
from pathlib import Path

import httpx
import pytest

import framesift
from api.schemas.new_datasets import NewDataset
from api.services.datasets.new_dataset import save_selection
from catalog.errors import NotFound
from catalog.frames.frames import SourceNames, remove
from catalog.lake.metadata.own_tables import expire
from catalog.records.datasets import recorded_datasets
from catalog.values import key_of
from pipeline.manifest import Manifest
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.api.servers import serving, several
from tests.pipeline.homes import FRAMES, open_home

QUESTION = ["--range", "car=1:", "--sample", "9", "--seed", "3"]


def change(home: Path) -> tuple[int, int]:
    """Remove a frame, change the others' counts, give them a new tag; snapshots before, after."""
    workspace = open_home(home)
    catalog = workspace.whole_catalog
    before = catalog.snapshot()
    with catalog.reading() as cursor:
        row = cursor.execute("SELECT min(fkey) FROM t_car WHERE value::INTEGER > 0").fetchone()
    assert row is not None
    with catalog.writing("changed by a test") as connection:
        names = SourceNames("IBM COS", "local", "a2d2", "")
        remove(connection, names, [key_of(row[0], "local", "a2d2")])
        connection.execute("UPDATE class_pixels SET car = car + 1")
    after = catalog.snapshot()
    workspace.close()
    return before, after


def fkeys(out: str) -> list[tuple[str, int]]:
    return [(frame["fkey"], frame["car"]) for frame in json.loads(out)["frames"]]


@pytest.mark.wide
def test_a_dataset_is_asked_again(home: Path) -> None:
    """The same question at a dataset's snapshot: the same frames, after changes and compaction."""
    create = ["dataset", "create", "cars", *QUESTION, "--json"]
    select = ["select", *QUESTION, "--json"]
    (_, dataset_json, _), (_, chosen, _), (_, sums, _) = several(
        home, create, select, ["classes", "--json"]
    )
    dataset = json.loads(dataset_json)
    before, after = change(home)
    at = ["--at", str(dataset["snapshot"])]
    assert dataset["snapshot"] == before
    compact = ["compact", "--keep-days", "0", "--now", "--json"]
    now, then, again, newer, count, sums_then, sums_now, compacted, then_2, again_2, checked = (
        several(
            home,
            select,
            [*select, *at],
            [*create, *at],
            create,
            ["sql", "select count(*) from t_car", *at],
            ["classes", "--json", *at],
            ["classes", "--json"],
            compact,
            [*select, *at],
            [*create, *at],
            ["catalog", "check", "--json"],
        )
    )
    assert fkeys(now[1]) != fkeys(chosen)
    assert fkeys(then[1]) == fkeys(then_2[1]) == fkeys(chosen)
    for status, out, _ in (again, again_2):
        assert status == 0
        assert json.loads(out) == dataset
    assert json.loads(newer[1])["version"] == 2
    assert json.loads(newer[1])["snapshot"] == after
    assert count[1] == f"0,{FRAMES}\n"
    assert sums_then[1] == sums
    assert sums_now[1] != sums
    assert before not in json.loads(compacted[1])["expired"]
    assert (checked[0], json.loads(checked[1])) == (0, []), checked
    frames = Manifest.read(Path(dataset["manifest"])).frames
    assert sorted(frames["fkey"].to_pylist()) == sorted(fkey for fkey, _ in fkeys(chosen))


@pytest.mark.wide
def test_a_snapshot_that_is_not_there(home: Path) -> None:
    """Every command says in one line which snapshots there are; nothing is made."""
    for status, out, err in several(
        home,
        ["sql", "select 1 from metaocean", "--at", "99"],
        ["select", "--at", "99"],
        ["classes", "--at", "0"],
        ["tags", "list", "--at", "-1"],
        ["dataset", "create", "d", "--at", "99"],
        ["catalog", "diff", "1", "99"],
        ["catalog", "export", str(home / "out"), "--at", "99"],
    ):
        assert (status, out) == (1, "")
        assert "error: no snapshot named" in err
        assert "the oldest is 1, the newest" in err
        assert err.count("\n") == 1
    assert not (home / "out").exists()
    assert recorded_datasets(open_home(home).records) == []


def test_an_expired_snapshot_becomes_no_dataset(home: Path) -> None:
    """A selection that was had before its snapshot expired cannot be saved under its number."""
    workspace = open_home(home)
    question = Question()
    selection = select_frames(workspace.catalog, question)
    change(home)
    with workspace.whole_catalog.writing("expire") as connection:
        expire(connection, [selection.snapshot])
    with pytest.raises(NotFound, match=f"no snapshot named '{selection.snapshot}'"):
        save_selection(workspace, NewDataset(name="late", question=question), selection)
    assert recorded_datasets(workspace.records) == []
    assert not (home / "datasets").exists()


@pytest.mark.wide
def test_server_and_client(home: Path) -> None:
    """`at` on classes, selections and datasets; the client saves the frames that it has."""
    before, after = change(home)
    with serving(home) as (url, _), framesift.connect(url) as client:
        old, new = client.select(car=(1, None), at=before), client.select(car=(1, None))
        assert (old.snapshot, new.snapshot) == (before, after)
        assert len({f["fkey"] for f in old} - {f["fkey"] for f in new}) == 1
        pixels = [{c["tag"]: c["pixels"] for c in client.classes(at=at)} for at in (before, None)]
        assert pixels[0]["car"] == sum(frame["car"] for frame in old)
        assert pixels[1]["car"] == sum(frame["car"] for frame in new)
        saved = old.save("old")
        assert (saved["snapshot"], saved["frames"]) == (before, len(old))
        for method, path, body in (
            ("GET", "/v1/classes", None),
            ("POST", "/v1/selections", {}),
            ("POST", "/v1/datasets", {"name": "d", "question": {}}),
        ):
            gone = httpx.request(method, f"{url}{path}?at=99", json=body)
            assert gone.status_code == 404
            assert gone.json()["detail"].startswith("no snapshot named '99'")
            for wrong in ("0", "-1", "x", str(2**63)):
                refused = httpx.request(method, f"{url}{path}?at={wrong}", json=body)
                assert refused.status_code == 422
                assert refused.json()["detail"].startswith("query.at")
        with pytest.raises(framesift.FramesiftServerError, match="no snapshot named '99'"):
            client.select(at=99)
