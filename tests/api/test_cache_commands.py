"""framesift cache ...: limits, pins and eviction, on a home, on a server, and by the client."""

import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

import framesift as client_package
from api.cli.commands.staging.stage import stage
from api.cli.options.byte_sizes import parse_bytes, parse_count
from api.services.session import Session
from catalog.errors import InUse, InvalidInput
from pipeline.cache.lease import Holder, leased
from pipeline.staging.stage import stage_dataset
from tests.api.servers import serving, several
from tests.pipeline.homes import FRAMES, copy_home, open_home
from tests.pipeline.test_datasets import make


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Path:
    """A home with "streets" staged."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    stage_dataset(workspace.records, make(workspace), workspace.cache, user="ada")
    workspace.close()
    return workspace.home


def test_sizes_are_read_as_people_write_them() -> None:
    """Decimal and binary units; anything else is refused."""
    assert [parse_bytes(text) for text in ("0", "12", "5kB", "1.5 GB", "2MiB", "3t")] == [
        0, 12, 5_000, 1_500_000_000, 2 << 20, 3_000_000_000_000,
    ]  # fmt: skip
    for wrong in ("", "GB", "-1", "1e9", "5 apples", "1iB", "0x10"):
        with pytest.raises(InvalidInput, match="such as 500GB"):
            parse_bytes(wrong)
    with pytest.raises(InvalidInput, match="expected a whole number"):
        parse_count("1.5")


@pytest.mark.wide
def test_home_and_server_say_the_same(home: Path, tmp_path: Path) -> None:
    """Each command, and what it refuses; the client gives what the command prints as JSON."""
    commands = [
        ["cache", "limit"],
        ["cache", "limit", "--hard", "2GB", "--soft", "1.5GB", "--hard-files", "1000", "--json"],
        ["cache", "limit", "--soft", "3GB"],
        ["cache", "limit", "--hard", "none", "--free", "1MB", "--user", "1GB"],
        ["cache", "pin", "streets"],
        ["cache", "status"],
        ["cache", "status", "--json"],
        ["cache", "evict", "streets"],
        ["cache", "unpin", "streets@1", "--json"],
        ["cache", "evict", "streets@1"],
        ["cache", "evict", "streets"],
        ["cache", "pin", "none"],
        ["stage", "streets", "--dry-run", "--workers", "2", "--json"],
        ["stage", "none", "--dry-run"],
    ]
    listed = [
        ["cache", "contents", "streets"],
        ["cache", "contents", "streets@1", "--json"],
        ["cache", "contents", "streets", "--missing", "--json"],
        ["cache", "contents", "none"],
        ["cache", "contents", "streets", "--from", "fs1/a2d2"],
    ]
    commands = [*listed, *commands, listed[2]]
    other = tmp_path / "other"
    shutil.copytree(home, other)
    here = several(home, *commands)
    with serving(other) as (url, _), client_package.connect(url) as client:
        there = several(tmp_path / "empty", *[["--server", url, *command] for command in commands])
        limits = client.cache.limits()
        pages = client.cache.contents("streets", missing=True)
        assert len([*pages]) == 2 * FRAMES
        assert client.cache.limit(user_bytes=None) == {**limits, "user_bytes": None}
        with pytest.raises(client_package.FramesiftServerError, match="soft limit of"):
            client.cache.limit(hard_bytes=1)
        with pytest.raises(client_package.NotFound):
            client.cache.unpin("streets")
    free = re.compile(r'[\d.]+ [kMGT]B free|"free_bytes": \d{4,}')  # of a disk that others use
    shown, expected = (
        [
            tuple(free.sub("", str(part).replace(str(other), str(home))) for part in one)
            for one in run
        ]
        for run in (there, here)
    )
    assert shown == expected
    assert f"{2 * FRAMES} files, " in here[0][1]
    contents = json.loads(here[1][1])["files"]
    assert len(contents) == len({file["file"] for file in contents}) == 2 * FRAMES
    assert sum(file["bytes"] for file in contents) > 0
    assert json.loads(here[2][1]) == {"files": []}
    assert "no dataset named 'none'" in here[3][2]
    assert "target fs1/a2d2: expected" in here[4][2]
    assert json.loads(here[-1][1])["files"] == contents  # evicted meanwhile
    here = here[len(listed) :]
    assert here[0][1].splitlines()[:2] == ["soft bytes: none", "hard bytes: none"]
    assert json.loads(here[1][1]) == {
        "cache": str(home / "cache"), "soft_bytes": 1_500_000_000, "hard_bytes": 2_000_000_000,
        "soft_files": None, "hard_files": 1000, "free_bytes": 0, "user_bytes": None,
    }  # fmt: skip
    assert "soft limit of 3,000,000,000 bytes: expected at most the hard one" in here[2][2]
    assert "user bytes: 1.0 GB" in here[3][1]
    assert f" in {2 * FRAMES} files, no limit; " in here[5][1]
    assert re.search(r"streets@1 +(█|#)+ +[\d.]+ MB +48 .* pin\b", here[5][1])
    assert re.search(r"local:a2d2 +(█|#)+ ", here[5][1])
    status = json.loads(here[6][1])
    (streets,) = status["datasets"]
    assert (streets["dataset"], streets["pinned"], streets["users"]) == ("streets@1", True, ["ada"])
    assert streets["bytes"] == streets["alone_bytes"] == status["bytes"] > 0
    assert status["sources"] == [
        {"source": "local:a2d2", "bytes": status["bytes"], "files": 2 * FRAMES}
    ]
    assert (status["unnamed"]["files"], status["leases"]) == (0, [])
    assert "it is pinned: framesift cache unpin" in here[7][2]
    assert here[9][1].startswith(f"evicted streets@1: {2 * FRAMES} files, ")
    assert "no staged dataset named 'streets@1'" in here[10][2]
    assert "no dataset named 'none'" in here[11][2]
    plan = json.loads(here[12][1])
    assert (plan["dataset"], plan["missing_files"], plan["fits"]) == ("streets@1", 2 * FRAMES, True)
    assert "no dataset named 'none'" in here[13][2]
    assert not list((home / "cache").glob("local:*/**/*.png"))


def test_a_plan_with_options_of_a_staging_names_them() -> None:
    """They would be ignored: each is named, with what goes with a plan."""
    with pytest.raises(InvalidInput, match=r"^--dry-run and --verify, --to: .* --workers alone"):
        stage("streets", verify=True, to=["afm:fs/set"], dry_run=True)


def test_words_of_a_verification_of_large_limits_and_of_a_cache_that_is_not_made(
    home: Path, tmp_path: Path
) -> None:
    """What was read again is called verified; TB; and the space that a first staging will have."""
    new = str(tmp_path / "not" / "made")
    verified, limited, status = several(
        home, ["cache", "verify", "streets"], ["cache", "limit", "--hard", "2TB"],
        ["cache", "status", "--cache", new, "--json"],
    )  # fmt: skip
    assert verified[1].startswith(f"verified streets version 1: {2 * FRAMES} files, ")
    assert "hard bytes: 2.0 TB" in limited[1]
    assert json.loads(status[1])["free_bytes"] > 0
    assert not Path(new).parent.exists()


def test_transfers_at_once_are_bounded(home: Path) -> None:
    """By the command as over REST (tests/api/test_wrong_requests.py)."""
    stagings = (
        ["stage", "streets"],
        ["stage", "streets", "--dry-run"],
        ["cache", "verify", "streets"],
    )
    for status, _, err in several(home, *[[*words, "--workers", "257"] for words in stagings]):
        assert (status, "got '257', expected 256 or less" in err) == (2, True)


def test_a_dataset_in_use_is_not_evicted(home: Path) -> None:
    """The message names the job; a dataset whose record is gone is found by its staged manifest."""
    workspace = open_home(home)
    cache = Session(workspace, is_command=True).cache
    (name,) = [place.name for place in (workspace.cache / ".manifests").iterdir()]
    with (
        leased(workspace.cache, name, Holder("streets@1", job="train-1", user="eve")),
        pytest.raises(Exception, match="streets@1, used by job train-1 of eve") as caught,
    ):
        cache.evict("streets")
    assert type(caught.value).__name__ == "InUse"
    workspace.close()
    away = open_home(home.parent / "elsewhere")
    try:
        found = Session(away, is_command=True).cache.at(workspace.cache).evict("streets")
    finally:
        away.close()
    assert (found.dataset, found.files) == ("streets@1", 2 * FRAMES)


@pytest.mark.wide
def test_every_version_of_a_removed_dataset_is_evicted_by_its_name(home: Path) -> None:
    """All of them or none; NAME@VERSION is that one."""
    with closing(open_home(home)) as workspace:
        session = Session(workspace, is_command=True)
        for cars in ("car=1:", "car=100:"):
            version = make(workspace, "streets", cars)
            stage_dataset(workspace.records, version, workspace.cache)
        cache = session.cache
        cache.pin("streets@2")
        session.datasets.remove("streets")
        assert cache.evict("streets@3").dataset == "streets@3"
        with pytest.raises(InUse, match=r"'streets@2'.*framesift cache unpin streets@2"):
            cache.evict("streets")
        assert {one.dataset for one in cache.status().datasets} == {"streets@1", "streets@2"}
        assert set(cache.unpin("streets").dataset.split(", ")) == {"streets@1", "streets@2"}
        evicted = cache.evict("streets")
        assert set(evicted.dataset.split(", ")) == {"streets@1", "streets@2"}
        assert (evicted.files, cache.status().datasets) == (2 * FRAMES, [])
