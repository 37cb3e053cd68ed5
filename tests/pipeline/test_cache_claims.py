"""Who fetches an entry of a cache that several hosts share, and when their word is void."""

import errno
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.cache import beat
from pipeline.cache.beat import Watch, beating
from pipeline.cache.stager import Stager, stager
from tests.api.servers import wait_until


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes count as dead after a moment."""
    monkeypatch.setattr(beat, "EXPIRES_S", 0.2)
    monkeypatch.setattr(beat, "BEAT_S", 0.01)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """An empty cache."""
    return tmp_path


@pytest.fixture
def own(cache: Path) -> Iterator[Stager]:
    """A staging of this process."""
    with stager(cache) as stager_of_test:
        yield stager_of_test


def elsewhere(cache: Path, name: str) -> Stager:
    """A staging of another host that has beaten once and claims "a/1.png"."""
    other = Stager(cache, name)
    other.folder.mkdir(parents=True)
    (cache / ".claims").mkdir(exist_ok=True)
    (other.folder / "beat").write_text(json.dumps({"host": "another", "process": "7:7"}))
    assert other.claim("a/1.png")
    return other


def test_an_entry_is_claimed_by_one(cache: Path, own: Stager) -> None:
    """The second waits until the first lets go; other entries are free."""
    with stager(cache) as other:
        assert own.claim("a/1.png")
        assert not other.claim("a/1.png")
        assert other.claim("a/2.png")
        other.release("a/1.png")  # not its own
        assert not other.claim("a/1.png")
        own.release("a/1.png")
        assert other.claim("a/1.png")


def test_a_host_that_died_holds_a_claim_for_a_while_only(
    cache: Path, own: Stager, impatient: None
) -> None:
    """Without beats it is taken over; not at the first look, however old its time."""
    other = elsewhere(cache, "other")
    os.utime(other.folder / "beat", (0, 0))
    assert not own.claim("a/1.png")
    wait_until(lambda: own.claim("a/1.png"))
    other.release("a/1.png")  # it comes back, and takes nobody's claim away
    assert not other.claim("a/1.png")


def test_a_claim_whose_folder_was_removed_is_free(cache: Path, own: Stager) -> None:
    """Nobody waits for a staging that another one has cleared away."""
    other = elsewhere(cache, "other")
    assert not own.claim("a/1.png")
    shutil.rmtree(other.folder)
    assert own.claim("a/1.png")


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.EXDEV])
def test_a_file_system_without_hard_links(
    cache: Path, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    """Claims are symbolic links there, and say the same."""

    def refuse(*_: object) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(os, "link", refuse)
    with stager(cache) as own, stager(cache) as other:
        assert own.claim("a/1.png")
        assert [claim.is_symlink() for claim in (cache / ".claims").iterdir()] == [True]
        assert not other.claim("a/1.png")
        own.release("a/1.png")
        assert other.claim("a/1.png")
        shutil.rmtree(other.folder)
        assert own.claim("a/1.png")
    assert list((cache / ".claims").iterdir()) == []


def test_a_claim_goes_on_while_its_host_lives(cache: Path, own: Stager, impatient: None) -> None:
    """Whatever its clock says: in 1970, or far ahead, a time that changes is a beat."""
    other = elsewhere(cache, "other")
    until, moment = time.monotonic() + 1.0, 0
    while time.monotonic() < until:
        moment = 4_000_000_000 if moment < 1_000 else moment % 1_000 + 1
        os.utime(other.folder / "beat", (moment, moment))
        assert not own.claim("a/1.png")
        time.sleep(0.02)


def test_a_killed_process_of_this_host_is_known_at_once(cache: Path, own: Stager) -> None:
    """Nobody waits a minute for what was killed beside them."""
    with beating(cache / "beat"):
        said = json.loads((cache / "beat").read_text())
    other = elsewhere(cache, "other")
    dead = {**said, "process": f"{os.getpid()}:1"}  # an earlier process of this number
    (other.folder / "beat").write_text(json.dumps(dead))
    assert own.claim("a/1.png")


def test_the_claims_of_a_killed_staging_go_with_its_folder(cache: Path, own: Stager) -> None:
    """Also of files that no later staging wants; a living one keeps its claims."""
    assert own.claim("b/1.png")
    dead = elsewhere(cache, "other")
    assert dead.claim("a/2.png")
    said = json.loads((own.folder / "beat").read_text())
    (dead.folder / "beat").write_text(json.dumps({**said, "process": f"{os.getpid()}:1"}))
    with stager(cache):
        pass
    assert [place.name for place in (cache / ".parts").iterdir()] == [own.name]
    assert [claim.samefile(own.folder / "beat") for claim in (cache / ".claims").iterdir()] == [
        True
    ]


def test_a_beat_goes_on(tmp_path: Path, impatient: None) -> None:
    """A living process is never dead, also where its host is not known."""
    watch = Watch()
    with beating(tmp_path / "beat"):
        (tmp_path / "beat").write_text("")
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            assert not watch.is_dead(tmp_path / "beat")
            time.sleep(0.02)
    assert not watch.is_dead(tmp_path / "beat")
    wait_until(lambda: watch.is_dead(tmp_path / "beat"))
