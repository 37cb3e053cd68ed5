"""Room in a cache: limits, what goes first, and what running jobs and pins keep."""

import json
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import CacheFull, InUse, InvalidInput, NotFound, StorageError
from pipeline.cache import beat, known_space
from pipeline.cache.beat import Watch, own_name
from pipeline.cache.checksums import MOST_FILES, recorded_checksums, recording
from pipeline.cache.contents import (
    PINNED_FILE,
    KnownEntries,
    space,
    staged_manifests,
    write_stagers,
)
from pipeline.cache.eviction import CacheContents, EvictionOrder, clear_evicted, evict
from pipeline.cache.known_space import KnownSpace
from pipeline.cache.lease import USED_FILE, Holder, Lease, held_leases, leased
from pipeline.cache.limits import Limits, change_limits, read_limits, write_limits
from pipeline.cache.reservation import Reservation
from pipeline.cache.stager import stager
from pipeline.cache.status import Space, cache_status
from pipeline.entry_name import HEADER_FILE
from pipeline.manifest import Manifest
from tests.pipeline.cached import BYTES, foreign_lease, keys, stage, staged_names
from tests.zygote import Forked

OWN = Holder("new@1", user="ada")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of old, middle and young, three files each, limited to ten files."""
    for number, name in enumerate(("old", "middle", "young")):
        stage(tmp_path, name, [f"{name}/{n}.png" for n in range(3)], used=1000.0 + number)
    write_limits(tmp_path, Limits(hard_bytes=10 * BYTES))
    return tmp_path


@pytest.fixture
def reservation(cache: Path) -> Iterator[Reservation]:
    """Room for a staging of this process."""
    with leased(cache, "new-v1-0", OWN) as lease:
        yield Reservation(cache, lease)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes count as dead after a moment."""
    monkeypatch.setattr(beat, "EXPIRES_S", 0.3)
    monkeypatch.setattr(beat, "BEAT_S", 0.01)


def test_limits_are_kept_by_all(tmp_path: Path) -> None:
    """They lie in the cache; what a later release adds is let alone, damage is an error."""
    assert read_limits(tmp_path) == Limits()
    limits = Limits(soft_bytes=5, hard_bytes=7, hard_files=3, free_bytes=2, user_bytes=4)
    write_limits(tmp_path, limits)
    assert read_limits(tmp_path) == limits
    (tmp_path / ".limits.json").write_text('{"hard_bytes": 7, "of_tomorrow": 1}')
    assert read_limits(tmp_path) == Limits(hard_bytes=7)
    for damaged in ("{", "[]", '{"hard_bytes": "much"}', '{"hard_bytes": -1}'):
        (tmp_path / ".limits.json").write_text(damaged)
        with pytest.raises(StorageError, match="framesift cache limit --hard"):
            read_limits(tmp_path)
        assert change_limits(tmp_path, hard_bytes=9) == Limits(hard_bytes=9)
        assert change_limits(tmp_path, soft_bytes=8) == Limits(hard_bytes=9, soft_bytes=8)
        assert read_limits(tmp_path) == Limits(hard_bytes=9, soft_bytes=8)
    with pytest.raises(InvalidInput, match="soft limit of 8 bytes"):
        write_limits(tmp_path, Limits(soft_bytes=8, hard_bytes=7))


def test_what_fits_evicts_nothing(cache: Path, reservation: Reservation) -> None:
    """One file more has room, a second one counts what was reserved before."""
    reservation.extend(BYTES, 1)
    assert staged_names(cache) == {"old", "middle", "young"}
    reservation.extend(BYTES, 1)
    assert staged_names(cache) == {"middle", "young"}


def test_the_least_recently_used_goes_first(cache: Path, reservation: Reservation) -> None:
    """Its manifest first, and no more of its entries than must; the rest goes next."""
    reservation.extend(3 * BYTES, 3)
    assert staged_names(cache) == {"middle", "young"}
    assert "old/2.png" in keys(cache)
    assert "old/1.png" not in keys(cache)
    reservation.extend(BYTES, 1)
    assert staged_names(cache) == {"middle", "young"}
    assert not any(key.startswith("old/") for key in keys(cache))
    assert sorted(place.name for place in (cache / "local:a2d2").iterdir()) == ["middle", "young"]


def test_a_manifest_was_used_when_it_was_written_or_held_last(cache: Path) -> None:
    """Whichever came later decides the order; so one that was staged again long after is young."""
    places = {name: cache / ".manifests" / f"{name}-v1-0" for name in ("old", "middle", "young")}
    os.utime(places["old"] / HEADER_FILE, (5000, 5000))
    os.utime(places["middle"] / USED_FILE, (4000, 4000))
    listed = [(one.name, one.used) for one in staged_manifests(cache)]
    assert listed == [("young-v1-0", 1002), ("middle-v1-0", 4000), ("old-v1-0", 5000)]


def test_a_manifest_that_is_written_anew_is_read_anew(cache: Path) -> None:
    """Its entries are kept as long as its header is the same file of the same time."""
    known = KnownEntries()

    def images() -> set[str]:
        return {
            Path(path).name.partition("~")[0]
            for one in staged_manifests(cache)
            if one.dataset == "old@1"
            for path in known.of(one)
        }

    assert images() == {"0", "1", "2"}
    stage(cache, "old", ["old/7.png"], used=1000.0)
    assert images() == {"7"}


def test_use_makes_young(cache: Path, reservation: Reservation) -> None:
    """A lease that begins or ends counts as use; one that holds nothing leaves no mark."""
    with leased(cache, "", OWN):
        pass
    assert not (cache / ".manifests" / "used").exists()
    with leased(cache, "old-v1-0", Holder("old@1", job="train-1")):
        pass
    reservation.extend(3 * BYTES, 3)
    assert staged_names(cache) == {"old", "young"}


def test_a_shared_entry_stays_with_the_dataset_that_is_held(
    cache: Path, reservation: Reservation
) -> None:
    """Of a dataset that shares files with a leased one only the others go."""
    stage(cache, "night", ["old/0.png", "old/1.png"], used=5000.0)
    with leased(cache, "night-v1-0", Holder("night@1", job="train-1")):
        reservation.extend(2 * BYTES, 2)
        assert staged_names(cache) == {"middle", "young", "night"}
        assert {"old/0.png", "old/1.png"} <= keys(cache)
        assert "old/2.png" not in keys(cache)


def test_full_of_leases_and_pins(cache: Path, reservation: Reservation) -> None:
    """The error names who holds the space; nothing is evicted in vain."""
    (cache / ".manifests" / "old-v1-0" / PINNED_FILE).touch()
    job = Holder("young@1", job="train-3", user="eve")
    with leased(cache, "young-v1-0", job), pytest.raises(CacheFull) as caught:
        reservation.extend(5 * BYTES, 5)
    said = str(caught.value)
    assert "old@1, pinned" in said
    assert "young@1, used by job train-3 of eve" in said
    assert "framesift cache unpin" in said
    assert "\n" not in said
    assert len(caught.value.holders) == 2
    assert staged_names(cache) == {"old", "middle", "young"}
    reservation.extend(4 * BYTES, 4)  # what was refused is not reserved
    assert staged_names(cache) == {"old", "young"}


def test_a_job_that_comes_while_its_dataset_is_evicted_keeps_it(cache: Path) -> None:
    """Its lease is seen by the look after the manifest is aside: back it goes, with its entries."""
    plan = CacheContents(cache, ()).plan(6 * BYTES, 6)
    assert [one.name for one in plan.manifests] == ["old-v1-0", "middle-v1-0"]

    def is_held() -> set[str]:
        aside = list((cache / ".manifests").glob(".old-v1-0.*"))
        return {"old-v1-0"} if aside else set()

    assert evict(cache, plan, is_held) == (3 * BYTES, 3)
    assert staged_names(cache) == {"old", "young"}
    assert {f"old/{n}.png" for n in range(3)} <= keys(cache)
    assert not any(key.startswith("middle/") for key in keys(cache))


def test_what_a_killed_eviction_left_aside_comes_back_to_its_job_alone(cache: Path) -> None:
    """A manifest that a job holds by now returns; one that nobody holds, or is there anew, goes."""
    places = {name: cache / ".manifests" / f"{name}-v1-0" for name in ("old", "middle", "young")}
    for place in places.values():
        place.rename(place.with_name(f".{place.name}.{'0' * 32}.evicted"))
    stage(cache, "young", ["young/0.png"], used=1.0)
    clear_evicted(cache, lambda: {"old-v1-0", "old-v1-00", "young-v1-0"})
    assert staged_names(cache) == {"old", "young"}
    assert len(Manifest.read(places["young"])) == 1
    assert len(list((cache / ".manifests").iterdir())) == 2


def test_the_folder_of_a_source_stays_when_its_last_file_goes(
    cache: Path, reservation: Reservation
) -> None:
    """Another staging may be about to fill it; the folders in it go."""
    reservation.evict_datasets(["old-v1-0", "middle-v1-0", "young-v1-0"])
    assert list((cache / "local:a2d2").iterdir()) == []


def test_what_a_window_holds_stays_where_a_dataset_is_evicted_by_name(
    cache: Path, reservation: Reservation
) -> None:
    """A job reads two of the dataset's files by a manifest of its own lease: the third goes."""
    stage(cache, "part", ["old/0.png", "old/1.png"], used=1.0)
    with leased(cache, "", Holder("part@1", job="train-1")) as lease:
        (cache / ".manifests" / "part-v1-0").rename(lease.folder / "manifest")
        reservation.evict_datasets(["old-v1-0"])
        assert staged_names(cache) == {"middle", "young"}
        assert {key for key in keys(cache) if key.startswith("old/")} == {"old/0.png", "old/1.png"}


def test_what_has_come_of_a_file_counts_once_against_the_disk(
    cache: Path, reservation: Reservation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a reserved file 1,000 bytes lie there already: they are not needed once more."""
    write_limits(cache, Limits())
    part = cache / ".parts" / "another"
    part.mkdir(parents=True)
    (part / "x.part").write_bytes(bytes(BYTES))
    there = BYTES * len(keys(cache))
    monkeypatch.setattr(
        "pipeline.cache.reservation.free_bytes", lambda _: 100 + there - BYTES * len(keys(cache))
    )
    reservation.extend(BYTES, 1)
    reservation.extend(100, 0)
    assert staged_names(cache) == {"old", "middle", "young"}
    reservation.extend(1, 0)
    assert staged_names(cache) == {"middle", "young"}


def test_nothing_is_reserved_once_all_has_come(cache: Path, reservation: Reservation) -> None:
    """The last file of three is told at once, however soon it comes after the others."""
    reservation.extend(3 * BYTES, 3)
    for left in (2, 1, 0):
        reservation.arrived(BYTES, 1)
        (lease,) = held_leases(cache, Watch())
        if not left:
            assert (lease.reserved_bytes, lease.reserved_files) == (0, 0)


def test_the_floor_of_free_space(cache: Path, reservation: Reservation) -> None:
    """More than the disk has cannot be kept free: the error says how much is free."""
    write_limits(cache, Limits(free_bytes=1 << 60))
    with pytest.raises(CacheFull, match=r"free, of which .* must stay free, but .* fetched"):
        reservation.extend(BYTES, 1)
    assert staged_names(cache) == {"old", "middle", "young"}


def test_a_limit_of_files(cache: Path, reservation: Reservation) -> None:
    """It evicts as one of bytes does; what was refused is not reserved; trimmed to the soft one."""
    write_limits(cache, Limits(hard_files=9, soft_files=6))
    with pytest.raises(CacheFull, match="limited to 9 files"):
        reservation.extend(0, 10)
    reservation.extend(0, 1)
    assert staged_names(cache) == {"middle", "young"}
    assert space(cache)[1] == 8
    reservation.trim()
    assert space(cache)[1] == 6


def test_the_soft_limit_is_reached_at_the_end(cache: Path, reservation: Reservation) -> None:
    """Making room leaves what is above it; the end evicts down to it, but nothing that is held."""
    write_limits(cache, Limits(soft_bytes=4 * BYTES, hard_bytes=10 * BYTES))
    reservation.extend(BYTES, 1)
    assert len(keys(cache)) == 9
    reservation.trim()
    assert staged_names(cache) == {"young"}
    with leased(cache, "young-v1-0", Holder("young@1", job="train-1")):
        write_limits(cache, Limits(soft_bytes=BYTES))
        reservation.trim()
    assert keys(cache) == {f"young/{n}.png" for n in range(3)}


def test_what_a_window_has_read(cache: Path, reservation: Reservation) -> None:
    """Goes though its own lease names it, unless others hold it; other manifests of it go too."""
    entries = {key: str(path.relative_to(cache)) for key, path in _entries(cache).items()}
    stage(cache, "new", ["old/0.png", "middle/0.png", "middle/1.png"], used=9000.0)
    with leased(cache, "middle-v1-0", Holder("middle@1", job="train-1")):
        freed = reservation.evict(
            [entries["old/0.png"], entries["middle/0.png"], "local:a2d2/gone.png"]
        )
    assert freed == BYTES
    assert "old/0.png" not in keys(cache)
    assert "middle/0.png" in keys(cache)
    assert not (cache / ".manifests" / "old-v1-0").exists()
    assert (cache / ".manifests" / "middle-v1-0").exists()
    assert not (cache / ".manifests" / "new-v1-0").exists()  # it is not whole any more


def _entries(cache: Path) -> dict[str, Path]:
    root = cache / "local:a2d2"
    return {
        str(path.relative_to(root)).partition("~")[0] + ".png": path for path in root.rglob("*.png")
    }


def test_two_stagings_never_pass_the_limit_together(cache: Path) -> None:
    """Sixteen at once ask for three files each where ten have room: three get it."""
    for name in ("old", "middle", "young"):
        (cache / ".manifests" / f"{name}-v1-0" / "manifest.json").unlink()
    got, refused = [], []
    start = threading.Barrier(16)
    held = threading.Barrier(16)

    def one(number: int) -> None:
        with leased(cache, f"new{number}-v1-0", Holder(f"new{number}@1")) as lease:
            start.wait()
            try:
                Reservation(cache, lease).extend(3 * BYTES, 3)
                got.append(number)
            except CacheFull as error:
                refused.append(str(error))
            held.wait()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (3, 13)
    assert all("3.00 MB to come" in said or "0.00 MB to come" in said for said in refused)
    assert list((cache / ".leases").glob("*-*")) == []


def test_a_host_that_dies_loses_its_lease(
    cache: Path, impatient: None, reservation: Reservation
) -> None:
    """Whoever needs room waits until its beat has stopped for long, and no longer."""
    lease = foreign_lease(cache, "old-v1-0", bytes=5 * BYTES, files=5)
    os.utime(lease / "beat", (0, 0))  # of 1970, whatever its clock says: not at the first look
    reservation.extend(4 * BYTES, 4)
    assert not lease.exists()
    assert "old" not in staged_names(cache)


def test_a_lease_goes_on_while_its_host_beats(
    cache: Path, impatient: None, reservation: Reservation
) -> None:
    """However its clock jumps: its dataset stays, and the error names it."""
    lease = foreign_lease(cache, "old-v1-0", bytes=5 * BYTES, files=5)
    stop = threading.Event()

    def jumping() -> None:
        moment = 0
        while not stop.wait(0.02):
            moment = 4_000_000_000 if moment < 1_000 else moment % 1_000 + 1
            os.utime(lease / "beat", (moment, moment))

    thread = threading.Thread(target=jumping)
    thread.start()
    try:
        with pytest.raises(CacheFull, match=r"night@1, used by job train-7 of bob \(process 7 on"):
            reservation.extend(4 * BYTES, 4)
    finally:
        stop.set()
        thread.join()
    assert "old" in staged_names(cache)


def test_a_killed_holder_is_known_at_once(cache: Path, reservation: Reservation) -> None:
    """SIGKILL on this host: nobody waits for its lease, nor for its turn."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from pipeline.cache.lease import Holder, Lease\n"
        "lease = Lease(Path(sys.argv[1]), 'old-v1-0', Holder('old@1', job='train-1'))\n"
        "(lease.folder.parent / '.turn').symlink_to(lease.folder.name)\n"
        "print('holds', flush=True); time.sleep(600)\n"
    )
    killed = Forked(["-c", code, str(cache)], stdout=subprocess.PIPE)
    assert killed.stdout is not None
    killed.stdout.readline()
    assert {one.manifest for one in held_leases(cache, Watch())} == {"new-v1-0", "old-v1-0"}
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    for name in ("middle", "young"):
        (cache / ".manifests" / f"{name}-v1-0" / PINNED_FILE).touch()
    reservation.extend(4 * BYTES, 4)
    assert staged_names(cache) == {"middle", "young"}


def test_a_job_whose_dataset_was_evicted_is_told(cache: Path) -> None:
    """A lease taken too late says so, and one taken in time keeps the manifest."""
    lease = Lease(cache, "old-v1-0", Holder("old@1", job="train-1"))
    lease.need_manifest()
    lease.release()
    lease = Lease(cache, "gone-v1-0", Holder("gone@1", job="train-1"))
    with pytest.raises(StorageError, match="was evicted from the cache before the job began"):
        lease.need_manifest()
    lease.release()


@pytest.mark.slow
def test_an_eviction_killed_at_any_moment_leaves_no_broken_manifest(tmp_path: Path) -> None:
    """SIGKILL at random, twenty times: what is named is there, and the next one goes on."""
    code = (
        "import sys; from pathlib import Path\n"
        "from pipeline.cache.lease import Holder, leased\n"
        "from pipeline.cache.reservation import Reservation\n"
        "print('begins', flush=True)\n"
        "with leased(Path(sys.argv[1]), 'new-v1-0', Holder('new@1')) as lease:\n"
        "    Reservation(Path(sys.argv[1]), lease).extend(1000, 1)\n"
    )
    for number in range(20):
        for name in "abcd":
            stage(tmp_path, name, [f"{name}/{n}.png" for n in range(100)], used=float(ord(name)))
        write_limits(tmp_path, Limits(hard_bytes=201 * BYTES))
        killed = Forked(["-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert killed.stdout is not None
        killed.stdout.readline()
        time.sleep(number * 0.005)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert staged_names(tmp_path) <= set("abcd")
    with leased(tmp_path, "new-v1-0", OWN) as lease:
        Reservation(tmp_path, lease).extend(BYTES, 1)
    assert staged_names(tmp_path) == {"c", "d"}
    assert len(keys(tmp_path)) == 200
    assert list(tmp_path.rglob("*.evicted")) == []


def test_one_users_datasets_stay_within_a_share(cache: Path, reservation: Reservation) -> None:
    """The user's oldest goes; one that others have staged, too, is theirs and stays."""
    places = {name: cache / ".manifests" / f"{name}-v1-0" for name in ("old", "middle", "young")}
    write_stagers(places["old"], ["ada", "eve"])
    write_stagers(places["middle"], ["ada"])
    write_stagers(places["young"], ["eve"])
    write_limits(cache, Limits(user_bytes=6 * BYTES))
    foreseen = reservation.preview(3 * BYTES, 3)
    assert (foreseen.fits, foreseen.eviction) == (True, None)
    reservation.extend(3 * BYTES, 3)
    assert staged_names(cache) == {"old", "middle", "young"}
    assert json.loads((places["old"] / "stagers.json").read_text()) == ["eve"]
    foreseen = reservation.preview(1 * BYTES, 1)
    assert foreseen.eviction is not None
    assert [one.dataset for one in foreseen.eviction.manifests] == ["middle@1"]
    assert staged_names(cache) == {"old", "middle", "young"}
    reservation.extend(1 * BYTES, 1)
    assert staged_names(cache) == {"old", "young"}
    assert len(keys(cache)) == 6
    foreseen = reservation.preview(3 * BYTES, 3)
    assert (foreseen.fits, "the datasets of one user" in foreseen.why) == (False, True)
    with pytest.raises(CacheFull, match=r"limited to 0\.01 MB for the datasets of one user"):
        reservation.extend(3 * BYTES, 3)
    assert staged_names(cache) == {"old", "young"}


@pytest.mark.parametrize(
    ("job", "left"), [("train-1", {"old", "middle", "young"}), ("", {"middle", "young"})]
)
def test_what_a_job_reads_counts_for_those_who_staged_it(
    cache: Path, reservation: Reservation, job: str, left: set[str]
) -> None:
    """Of another's dataset a user's job takes none of the user's share, a staging does."""
    for name, user in (("old", "ada"), ("middle", "ada2"), ("young", "eve")):
        write_stagers(cache / ".manifests" / f"{name}-v1-0", [user])
    write_limits(cache, Limits(user_bytes=6 * BYTES))
    with leased(cache, "young-v1-0", Holder("young@1", job=job, user="ada")):
        reservation.extend(3 * BYTES, 3)
        assert staged_names(cache) == left


def test_a_dataset_is_evicted_by_name(cache: Path, reservation: Reservation) -> None:
    """With what no other names; not while it is used or pinned."""
    stage(cache, "night", ["old/0.png", "night/0.png"])
    job = Holder("night@1", job="train-1")
    with leased(cache, "night-v1-0", job), pytest.raises(InUse, match=r"night@1.* train-1"):
        reservation.evict_datasets(["old-v1-0", "night-v1-0"])
    assert "old" in staged_names(cache)
    (cache / ".manifests" / "night-v1-0" / PINNED_FILE).touch()
    with pytest.raises(InUse, match=r"framesift cache unpin night@1$"):
        reservation.evict_datasets(["night-v1-0"])
    (cache / ".manifests" / "night-v1-0" / PINNED_FILE).unlink()
    assert reservation.evict_datasets(["night-v1-0"]) == (BYTES, 1)
    assert staged_names(cache) == {"old", "middle", "young"}
    with pytest.raises(NotFound):
        reservation.evict_datasets(["night-v1-0"])


def test_what_fills_a_cache(cache: Path) -> None:
    """By dataset and source; shared files count for each, and what nothing names is told."""
    stage(cache, "night", ["old/0.png", "night/0.png"], used=9000.0)
    (cache / ".manifests" / "old-v1-0" / PINNED_FILE).touch()
    (cache / ".manifests" / "middle-v1-0" / "manifest.json").unlink()
    with leased(cache, "young-v1-0", Holder("young@1", job="train-1")):
        status = cache_status(cache)
    assert status.space == Space(10 * BYTES, 10)
    assert status.sources == {"local:a2d2": Space(10 * BYTES, 10)}
    assert status.unnamed == Space(3 * BYTES, 3)
    found = {one.manifest.dataset: one for one in status.datasets}
    assert set(found) == {"young@1", "night@1", "old@1"}
    assert (found["night@1"].space.files, found["night@1"].alone.files) == (2, 1)
    assert found["old@1"].manifest.pinned
    assert [lease.holder.job for lease in found["young@1"].leases] == ["train-1"]
    assert cache_status(cache / "none").datasets == ()


def test_checksums_of_ended_stagings_are_joined(cache: Path) -> None:
    """As each ends, also by SIGTERM as beside a job: those of entries that are there stay, once.

    A living staging keeps its file.
    """
    entries = [str(path.relative_to(cache)) for path in _entries(cache).values()]
    with stager(cache) as own, recording(cache, own.name) as living:
        living.record(entries[0], "md5:living", BYTES)
        for number in range(MOST_FILES + 1):
            with suppress(SystemExit), recording(cache, f"ended{number}") as ended:
                ended.record(entries[number % len(entries)], f"md5:{number % len(entries)}", BYTES)
                ended.record(f"local:a2d2/gone-{number}.png", "md5:gone", BYTES)
                raise SystemExit(0)
        assert len(list((cache / ".checksums").iterdir())) == 2
        assert (cache / ".checksums" / f"{own.name}.jsonl").exists()
        found = recorded_checksums(cache)
    assert found == {
        entry: {f"md5:{number}", *(["md5:living"] if number == 0 else [])}
        for number, entry in enumerate(entries)
    }


def test_a_checksum_that_was_cut_is_no_checksum(cache: Path) -> None:
    """A file system that takes a part of a line refuses it; nothing counts as recorded then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with recording(cache, "full") as checksums:
        checksums.record("local:a2d2/1.png", "crc32:0", BYTES)
        written = (cache / ".checksums" / "full.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (written + 10, hard))
        try:
            with pytest.raises(OSError, match="too large"):
                checksums.record("local:a2d2/2.png", "crc32:0", BYTES)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert recorded_checksums(cache) == {"local:a2d2/1.png": {"crc32:0"}}


def test_the_empty_folder_of_a_killed_staging_goes_at_once(cache: Path) -> None:
    """Also before its first beat: its name says whose it is; that of another host has a minute."""
    code = (
        "import sys; from pathlib import Path\n"
        "from pipeline.cache.beat import own_name\n"
        "(Path(sys.argv[1]) / '.parts' / own_name()).mkdir(parents=True)\n"
    )
    Forked(["-c", code, str(cache)]).communicate()
    (cache / ".parts" / "00-0123456789ab-7-7").mkdir()
    (cache / ".parts" / own_name()).mkdir()
    assert len(list((cache / ".parts").iterdir())) == 3
    with stager(cache):
        pass
    left = {place.name.split("-")[2] for place in (cache / ".parts").iterdir()}
    assert left == {"7", str(os.getpid())}


def test_a_cache_is_counted_where_it_changed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a walk counts it, whatever comes and goes; folders that stay as they are are not read."""
    monkeypatch.setattr(known_space, "_SETTLED_S", 0.0)
    known = KnownSpace(cache)
    for _ in range(3):
        assert known.count() == space(cache) == (9 * BYTES, 9)
    listed: list[str] = []
    counted = known_space._counted

    def counting(path: str, mark: tuple[int, int]) -> object:
        listed.append(Path(path).name)
        return counted(path, mark)

    monkeypatch.setattr(known_space, "_counted", counting)
    assert known.count() == (9 * BYTES, 9)
    assert listed == []
    stage(cache, "young", ["young/3.png", "new/0.png"])
    _entries(cache)["old/0.png"].unlink()
    assert known.count() == space(cache) == (10 * BYTES, 10)
    assert set(listed) == {"local:a2d2", "old", "young", "new"}
    for path in _entries(cache).values():
        path.unlink()
    assert known.count() == space(cache) == (0, 0)


def test_an_order_of_eviction_is_used_again_until_somebody_holds_more(
    cache: Path, reservation: Reservation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next eviction goes on in it; a lease, a pin or a staging since then has it made again."""
    made: list[int] = []
    order = CacheContents.order

    def counted(contents: CacheContents, *among: Any) -> EvictionOrder:
        made.append(len(contents.entries))
        return order(contents, *among)

    monkeypatch.setattr(CacheContents, "order", counted)
    reservation.extend(2 * BYTES, 2)
    reservation.extend(BYTES, 1)
    assert (made, keys(cache) & {f"old/{n}.png" for n in range(3)}) == ([9], {"old/2.png"})
    with leased(cache, "middle-v1-0", Holder("middle@1", job="train-1")):
        reservation.extend(3 * BYTES, 3)
        assert staged_names(cache) == {"middle"}
    assert len(made) == 2
    (cache / ".manifests" / "middle-v1-0" / PINNED_FILE).touch()
    reservation.extend(BYTES, 1)
    assert staged_names(cache) == {"middle"}
    assert len(made) == 3
