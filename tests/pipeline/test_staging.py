"""Bringing a dataset's files into a cache."""

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from api.workspace import Workspace
from catalog.errors import BadFile, CacheFull, NotFound, StagingCancelled, StorageError
from catalog.records.sources import recorded_source
from catalog.records.tables import Dataset, Staging
from ingest.scan.scan import scan_source
from ingest.sources.local_folder import LocalFolder
from ingest.sources.opened_file import OpenedFile
from pipeline.cache.checksums import recording
from pipeline.cache.lease import Holder, leased
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.stager import stager
from pipeline.cache.verify import READ_AT_ONCE, Verifier
from pipeline.manifest import Manifest
from pipeline.staging.check_present import without_damaged
from pipeline.staging.fetch import FailedFile, fetch_files
from pipeline.staging.opened_sources import OpenedSources
from pipeline.staging.plan import StagingPlan, make_cache, plan_staging
from pipeline.staging.progress import Progress
from pipeline.staging.stage import newest_manifest, stage_dataset
from tests import disks
from tests.api.servers import wait_until
from tests.pipeline.homes import FRAMES, REPOSITORY
from tests.pipeline.test_datasets import make
from tests.zygote import Forked

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def files_below(folder: Path) -> list[Path]:
    """Every file, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def copies(cache: Path) -> list[Path]:
    """The copied files: without manifests and locks."""
    hidden = {".manifests", ".parts", ".claims", ".checksums", ".leases", ".statistics"}
    return [path for path in files_below(cache) if not hidden & set(path.relative_to(cache).parts)]


def fetch(plan: StagingPlan, cache: Path, sources: OpenedSources) -> None:
    """Fetch a plan's files, two at once."""
    with stager(cache) as own, recording(cache, own.name) as checksums:
        fetch_files(plan, own, checksums, sources.files, workers=2)


def test_everything_is_copied_and_the_staged_manifest_finds_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Images and labels lie in the cache, byte for byte, where the staged manifest says."""
    dataset = make(workspace)
    staging = stage_dataset(workspace.records, dataset, tmp_path / "cache")
    own, staged = Manifest.read(Path(dataset.manifest)), Manifest.read(Path(staging.manifest))
    assert (staging.files, staging.files_copied) == (2 * FRAMES, 2 * FRAMES)
    assert staging.bytes == staging.bytes_copied > 0
    assert staged.header.staged
    assert staged.header.id == own.header.id == dataset.content_id
    assert staged.frames.equals(own.frames)
    for here, there in zip(
        [*own.image_paths(), *own.label_paths()],
        [*staged.image_paths(), *staged.label_paths()],
        strict=True,
    ):
        assert str(there).startswith(str(tmp_path / "cache"))
        assert Path(str(there)).read_bytes() == Path(str(here)).read_bytes()
    assert len(copies(tmp_path / "cache")) == 2 * FRAMES
    assert newest_manifest(workspace.records, dataset) == Path(staging.manifest)


@pytest.mark.parametrize(("fails", "ends_after"), [("FFSFFSFF", None), ("SFFSFFF", 7), ("FFF", 3)])
def test_a_source_is_down_where_files_fail_in_a_row(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
    ends_after: int | None,
) -> None:
    """At the third failure after one another the staging ends; six that successes part do not."""
    monkeypatch.setattr("pipeline.staging.fetch._FAILURES_IN_A_ROW", 3)
    monkeypatch.setattr("pipeline.staging.fetch._FIRST_PAUSE_S", 0.0)
    manifest, cache = Manifest.read(Path(make(workspace).manifest)), tmp_path / "cache"
    whole = plan_staging(manifest, cache)
    plan = replace(whole, missing=whole.missing[: len(fails)])
    order = [item.key for item in plan.missing]
    taken = 0

    class Flaky(LocalFolder):
        """Files come and fail in the plan's order, each when the one before has been counted."""

        @contextmanager
        def open_file(
            self, key: str, version: str | None = None, start: int = 0, length: int | None = None
        ) -> Iterator[OpenedFile]:
            wait_until(lambda: taken >= order.index(key))
            if fails[order.index(key)] == "F":
                raise StorageError("input/output error", self.root)
            with super().open_file(key, version, start, length) as opened:
                yield opened

    def told(progress: Progress) -> None:
        nonlocal taken
        taken = progress.failed + progress.files - (plan.files - len(plan.missing))

    failed: list[FailedFile] = []
    source = Flaky(Path(manifest.header.roots["a2d2"]))
    make_cache(cache)
    ends = nullcontext() if ends_after is None else pytest.raises(StorageError, match="one file af")
    with stager(cache) as own, recording(cache, own.name) as checksums, ends:
        # A transfer for each: threads come to fewer in any order, and a failed one comes again.
        # Later files would have them all, and wait there for one that has none.
        fetch_files(
            plan, own, checksums, lambda _: source,
            workers=len(fails), progress=told, failed=failed.append,
        )  # fmt: skip
    assert len(failed) == fails[:ends_after].count("F")
    assert all(one.of_source for one in failed)
    assert len(copies(cache)) == fails[:ends_after].count("S")


def test_a_second_time_copies_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """What is in the cache stays untouched."""
    dataset = make(workspace)
    stage_dataset(workspace.records, dataset, tmp_path / "cache")
    before = {path: path.stat().st_mtime_ns for path in copies(tmp_path / "cache")}
    again = stage_dataset(workspace.records, dataset, tmp_path / "cache")
    assert (again.files_copied, again.bytes_copied) == (0, 0)
    assert {path: path.stat().st_mtime_ns for path in copies(tmp_path / "cache")} == before


def test_a_cut_copy_is_made_again(workspace: Workspace, tmp_path: Path) -> None:
    """A file of another size in the cache is not taken for a copy."""
    dataset = make(workspace)
    stage_dataset(workspace.records, dataset, tmp_path / "cache")
    victim = copies(tmp_path / "cache")[3]
    whole = victim.read_bytes()
    victim.write_bytes(whole[:100])
    again = stage_dataset(workspace.records, dataset, tmp_path / "cache")
    assert again.files_copied == 1
    assert victim.read_bytes() == whole


@pytest.mark.wide
def test_a_label_rewritten_with_as_many_bytes_is_copied_again(
    own_source: Workspace, tmp_path: Path
) -> None:
    """The dataset made after the change has the new label; the earlier one keeps its own."""
    first = make(own_source)
    staged = Manifest.read(
        Path(stage_dataset(own_source.records, first, tmp_path / "cache").manifest)
    )
    label = Path(str(Manifest.read(Path(first.manifest)).label_paths()[5]))
    old = label.read_bytes()
    other = Path(str(Manifest.read(Path(first.manifest)).label_paths()[6]))
    png = other.read_bytes()
    png, old_size = png + bytes(max(0, len(old) - len(png))), len(old)
    label.write_bytes(old + bytes(max(0, len(png) - old_size)))  # both of one size
    source = recorded_source(own_source.records, "a2d2")
    scan_source(own_source.whole_catalog, own_source.records, source)
    second = make(own_source)
    stage_dataset(own_source.records, second, tmp_path / "cache")
    before = label.stat().st_mtime_ns
    while label.stat().st_mtime_ns // 1000 == before // 1000:
        label.write_bytes(png)
    scan_source(own_source.whole_catalog, own_source.records, source)
    third = make(own_source)
    assert len({first.content_id, second.content_id, third.content_id}) == 3
    staging = stage_dataset(own_source.records, third, tmp_path / "cache")
    assert staging.files_copied == 1
    now = Manifest.read(Path(staging.manifest))
    assert Path(str(now.label_paths()[5])).read_bytes() == png
    assert Path(str(staged.label_paths()[5])).read_bytes() == old
    # What is in the cache is not asked of the source, which has another label by now.
    assert stage_dataset(own_source.records, first, tmp_path / "cache").files_copied == 0
    with pytest.raises(StorageError, match=r"has changed since the dataset was made"):
        stage_dataset(own_source.records, second, tmp_path / "elsewhere")


def test_progress_is_told(workspace: Workspace, tmp_path: Path) -> None:
    """Files and bytes rise to the plan's."""
    told: list[Progress] = []
    dataset = make(workspace)
    staging = stage_dataset(workspace.records, dataset, tmp_path / "cache", progress=told.append)
    assert [(one.files, one.bytes) for one in told] == sorted(
        (one.files, one.bytes) for one in told
    )
    assert (told[0].files, told[0].eta_s) == (0, None)
    assert (told[-1].files, told[-1].bytes) == (staging.files, staging.bytes)
    assert (told[-1].of_files, told[-1].of_bytes) == (staging.files, staging.bytes)
    assert told[-1].eta_s == 0
    stage_dataset(workspace.records, dataset, tmp_path / "cache", progress=told.append)
    assert (told[-1].files, told[-1].fetched_bytes, told[-1].eta_s) == (staging.files, 0, 0)


def test_files_that_cannot_be_had_are_not_waited_for(own_source: Workspace, tmp_path: Path) -> None:
    """The time left counts what is still to come: none of it at the end, though files failed."""
    told: list[Progress] = []
    dataset = make(own_source)
    gone = Manifest.read(Path(dataset.manifest)).image_paths()[5:8]
    gone_bytes = sum(Path(path).stat().st_size for path in gone)
    for path in gone:
        Path(path).unlink()
    with pytest.raises(StorageError, match=r"3 of \d+ files could not be staged"):
        stage_dataset(own_source.records, dataset, tmp_path / "cache", progress=told.append)
    last = told[-1]
    assert (last.failed, last.failed_bytes, last.queued, last.eta_s) == (3, gone_bytes, 0, 0)
    coming = [now for now in told if now.queued and now.fetched_bytes]
    assert coming
    for now in coming:
        left = now.of_bytes - now.bytes - now.failed_bytes
        assert now.eta_s == pytest.approx(left / 1e6 / now.mb_per_s)


def test_a_source_file_that_changed_is_refused(own_source: Workspace, tmp_path: Path) -> None:
    """Another size than catalogued: the catalog's counts are not this file's."""
    dataset = make(own_source)
    image = Path(Manifest.read(Path(dataset.manifest)).image_paths()[5])
    image.write_bytes(image.read_bytes() + b"more")
    with pytest.raises(
        StorageError, match=r"has changed since the dataset was made.*framesift ingest, then"
    ):
        stage_dataset(own_source.records, dataset, tmp_path / "cache")
    assert not [path for path in copies(tmp_path / "cache") if path.name.startswith(image.stem)]
    assert newest_manifest(own_source.records, dataset) == Path(dataset.manifest)


def test_a_source_file_that_vanished_is_named(own_source: Workspace, tmp_path: Path) -> None:
    """The message names the file and says what to do; no part is left."""
    dataset = make(own_source)
    image = Path(Manifest.read(Path(dataset.manifest)).image_paths()[5])
    image.unlink()
    with pytest.raises(StorageError, match=r"No such file.*is the source mounted") as caught:
        stage_dataset(own_source.records, dataset, tmp_path / "cache")
    assert caught.value.path == str(image)
    assert not list((tmp_path / "cache").rglob("*.part"))
    image.write_bytes(b"")
    with pytest.raises(StorageError, match=r"another version is there: 0 bytes"):
        stage_dataset(own_source.records, dataset, tmp_path / "cache")


def test_a_key_that_leaves_the_root_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    """A manifest from elsewhere cannot have files copied from or to any place it likes."""
    manifest = Manifest.read(Path(make(workspace).manifest))
    for key in ("../../etc/passwd", "/etc/passwd", "a/../../b"):
        column = manifest.frames.schema.get_field_index("image")
        keys = [key, *manifest.frames["image"].to_pylist()[1:]]
        field = manifest.frames.schema.field(column)
        evil = manifest.frames.set_column(column, field, pa.array(keys))
        plan = plan_staging(replace(manifest, frames=evil), tmp_path / "cache")
        (item,) = [item for item in plan.missing if item.key == key]
        with pytest.raises(BadFile, match="outside its source's folder"):
            plan.target(item)
        assert not plan.is_there(item)


def test_a_bucket_whose_source_was_removed_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    """Its endpoint and keys went with its record."""
    manifest = Manifest.read(Path(make(workspace).manifest))
    header = replace(manifest.header, roots={"a2d2": "s3://bucket"}, datasources={"a2d2": "x:y"})
    plan = plan_staging(replace(manifest, header=header), tmp_path)
    sources = OpenedSources(workspace.records, header)
    with pytest.raises(NotFound, match="was removed, and with it what opens s3://bucket: add it"):
        fetch(plan, tmp_path, sources)


def test_sources_whose_names_look_alike_do_not_share_a_folder(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Datasources a/b and a_b are two folders in the cache."""
    manifest = Manifest.read(Path(make(workspace).manifest))
    folders = set()
    for datasource in ("a/b", "a_b", "a:b", "..", "a%2Fb"):
        header = replace(manifest.header, datasources={"a2d2": f"local:{datasource}"})
        plan = plan_staging(replace(manifest, header=header), tmp_path)
        folder = Path(plan.roots["a2d2"])
        assert folder.parent == tmp_path
        folders.add(folder)
    assert len(folders) == 5


def test_a_cache_that_is_too_small_is_refused_before_anything_is_copied(
    workspace: Workspace, small_disk: Path
) -> None:
    """On a disk of 1 MB: one line with both sizes, and an empty cache."""
    dataset = make(workspace)
    with pytest.raises(StorageError, match=r"free, but .* are to be fetched") as caught:
        stage_dataset(workspace.records, dataset, small_disk / "cache")
    assert "\n" not in str(caught.value)
    assert copies(small_disk) == []


def test_a_limited_cache_makes_room_for_the_next_dataset(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The older dataset stays while a job reads it; then it goes, and lies in its source again."""
    cache = tmp_path / "cache"
    many, few = make(workspace, "many", "car=10000:"), make(workspace, "few", "car=0:9999")
    first = stage_dataset(workspace.records, many, cache)
    write_limits(cache, Limits(hard_bytes=first.bytes))
    with (
        leased(cache, Path(first.manifest).name, Holder("many@1", job="train-1")),
        pytest.raises(CacheFull, match="many@1, used by job train-1"),
    ):
        stage_dataset(workspace.records, few, cache)
    assert len(copies(cache)) == first.files + 1  # and the limits
    second = stage_dataset(workspace.records, few, cache)
    assert newest_manifest(workspace.records, few) == Path(second.manifest)
    assert newest_manifest(workspace.records, many) == Path(many.manifest)
    assert sum(path.stat().st_size for path in cache.glob("local:*/**/*.png")) <= first.bytes
    assert list((cache / ".leases").glob("[!.]*")) == []


def test_a_disk_that_fills_up_on_the_way_is_one_line(
    workspace: Workspace, small_disk: Path
) -> None:
    """Somebody else took the space after the check: an error, no parts, what is done stays."""
    manifest = Manifest.read(Path(make(workspace).manifest))
    plan = plan_staging(manifest, small_disk / "cache")
    sources = OpenedSources(workspace.records, manifest.header)
    with pytest.raises(StorageError, match="No space left on device"):
        fetch(plan, small_disk / "cache", sources)
    assert not list(small_disk.rglob("*.part"))
    sizes = {plan.target(item): item.size for item in plan.missing}
    assert all(path.stat().st_size == sizes[path] for path in copies(small_disk / "cache"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    with disks.small_disk(tmp_path / "small", "size=1m") as folder:
        yield folder


def test_what_was_staged_is_there_after_a_power_cut(workspace: Workspace, tmp_path: Path) -> None:
    """Every copy has its bytes on the disk itself."""
    dataset = make(workspace)
    with disks.disk(tmp_path / "power") as powered:
        stage_dataset(workspace.records, dataset, powered.folder / "cache")
        written = {path.name: path.read_bytes() for path in copies(powered.folder / "cache")}
        assert written
        with powered.power_cut() as cut:
            for path in copies(cut / "cache"):
                assert path.read_bytes() == written[path.name]


@needs_root
def test_a_cache_without_permission_is_one_line(tmp_path: Path) -> None:
    """As another user: the cache is named, and what to do."""
    readable(tmp_path)
    (tmp_path / "cache").mkdir(mode=0o755)
    code = (
        "import sys; from pathlib import Path\n"
        "from catalog.errors import StorageError\n"
        "from pipeline.staging.plan import make_cache\n"
        "cache = Path(sys.argv[1])\n"
        "try: make_cache(cache)\n"
        "except StorageError as error: print(error)\n"
    )
    run = subprocess.run(
        [*as_nobody(), sys.executable, "-c", code, str(tmp_path / "cache")],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stderr == ""
    assert run.stdout == (
        f"cache {tmp_path / 'cache'}: cannot be written: Permission denied; "
        "give another with --cache\n"
    )


def readable(folder: Path) -> None:
    """Let other users in, down to the folder."""
    for above in (folder, *folder.parents):
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o055)


def as_nobody() -> list[str]:
    """The beginning of a command that runs as another user."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


_SLOW = """
import sys, time
from pathlib import Path
from catalog.records.datasets import recorded_dataset
from pipeline.staging import arrival
from pipeline.staging.stage import stage_dataset
from tests.pipeline.homes import open_home

def slow(content, direct, write=arrival._InMemory._write):
    content._temporary_path.write_bytes(content._buffer.view[:1000])
    print(content._temporary_path, flush=True)
    time.sleep(0.05 if FEW.pop(0) else 600)
    write(content, direct)

FEW = [True] * 6 + [False] * 99
arrival._InMemory._write = slow
workspace = open_home(Path(sys.argv[1]))
stage_dataset(workspace.records, recorded_dataset(workspace.records, "streets"), Path(sys.argv[2]))
"""


def test_a_killed_staging_leaves_parts_only_and_the_next_one_clears_them(
    workspace: Workspace, tmp_path: Path
) -> None:
    """SIGKILL in the middle: whole files and parts; the next staging copies the rest."""
    dataset = make(workspace)
    cache = tmp_path / "cache"
    slow = ["-c", _SLOW, str(workspace.home), str(cache)]
    killed = Forked(slow, stdout=subprocess.PIPE)
    assert killed.stdout is not None
    for _ in range(8):
        killed.stdout.readline()
    wait_until(lambda: len(copies(cache)) == 6)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert list(cache.rglob("*.part")), "it was killed too late to prove anything"
    plan = plan_staging(Manifest.read(Path(dataset.manifest)), tmp_path / "other")
    sizes = {plan.target(item): item.size for item in plan.missing}
    whole = copies(cache)
    assert 0 < len(whole) < 2 * FRAMES
    by_key = {target.relative_to(tmp_path / "other"): size for target, size in sizes.items()}
    assert all(path.stat().st_size == by_key[path.relative_to(cache)] for path in whole)
    assert newest_manifest(workspace.records, dataset) == Path(dataset.manifest)
    staging = stage_dataset(workspace.records, dataset, cache)
    assert staging.files_copied == 2 * FRAMES - len(whole)
    assert not list(cache.rglob("*.part"))
    assert list((cache / ".parts").iterdir()) == list((cache / ".claims").iterdir()) == []


def test_the_parts_of_a_running_staging_are_left_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Only the folder of a dead one is cleared."""
    cache = tmp_path / "cache"
    with stager(cache) as running:
        (running.folder / "7.part").write_bytes(b"half")
        stage_dataset(workspace.records, make(workspace), cache)
        assert (running.folder / "7.part").exists()
        left = cache / ".parts" / "left"
        shutil.copytree(running.folder, left)
    beat = json.loads((left / "beat").read_text())
    (left / "beat").write_text(json.dumps({**beat, "process": f"{os.getpid()}:1"}))
    stage_dataset(workspace.records, make(workspace), cache)
    assert not left.exists()


def test_stagings_of_one_dataset_at_once_agree(workspace: Workspace, tmp_path: Path) -> None:
    """Three at once into one cache: all succeed, the cache is whole, each file is fetched once."""
    dataset = make(workspace)

    def stage(_: int) -> Staging:
        return stage_dataset(workspace.records, dataset, tmp_path / "cache")

    with ThreadPoolExecutor(3) as pool:
        stagings = list(pool.map(stage, range(3)))
    manifests = {staging.manifest for staging in stagings}
    assert len(manifests) == 1
    assert sum(staging.files_copied for staging in stagings) == 2 * FRAMES
    assert sum(staging.bytes_copied for staging in stagings) == stagings[0].bytes
    staged = Manifest.read(Path(manifests.pop()))
    paths = [*staged.image_paths(), *staged.label_paths()]
    assert all(Path(str(path)).is_file() for path in paths)
    assert len(copies(tmp_path / "cache")) == 2 * FRAMES
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_two_homes_that_share_a_cache_do_not_mix_their_manifests(
    workspace: Workspace, own_source_twin: Workspace, tmp_path: Path
) -> None:
    """Datasets of one name and version but other content are staged side by side."""
    ours = make(workspace)
    theirs = make(own_source_twin, "streets", "car=10000:")
    first = stage_dataset(workspace.records, ours, tmp_path / "cache")
    stage_dataset(own_source_twin.records, theirs, tmp_path / "cache")
    assert Manifest.read(Path(first.manifest)).header.id == ours.content_id


@pytest.fixture
def own_source_twin(catalogued: Path, tmp_path: Path) -> Workspace:
    """A second home."""
    from tests.pipeline.homes import copy_home, open_home

    return open_home(copy_home(catalogued, tmp_path / "twin"))


def test_a_staged_manifest_that_is_gone_or_damaged_is_not_used(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Jobs go back to the dataset's own manifest when a cache was cleared."""
    dataset: Dataset = make(workspace)
    staging = stage_dataset(workspace.records, dataset, tmp_path / "cache")
    (Path(staging.manifest) / "frames.parquet").unlink()
    assert newest_manifest(workspace.records, dataset) == Path(dataset.manifest)


def test_the_check_for_permission_leaves_nothing(tmp_path: Path) -> None:
    """Many checks at once do not disturb each other, and leave the cache empty."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: make_cache(tmp_path / "cache"), range(100)))
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("known_by", ["its CRC", "its MD5", "the PNG's own CRC"])
def test_a_staged_file_with_zeroed_bytes_is_found_and_fetched_again(
    workspace: Workspace, tmp_path: Path, known_by: str
) -> None:
    """4 KiB in the middle, as a disk loses them; also where its own checksum is lost."""
    dataset, cache = make(workspace), tmp_path / "cache"
    stage_dataset(workspace.records, dataset, cache)
    if known_by != "its CRC":
        shutil.rmtree(cache / ".checksums")
    if known_by == "its MD5":
        with recording(cache, "earlier") as checksums:
            for path in copies(cache):
                md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
                checksums.record(str(path.relative_to(cache)), f"md5:{md5}", path.stat().st_size)
    victim = copies(cache)[7]
    whole = victim.read_bytes()
    middle = len(whole) // 2
    victim.write_bytes(whole[:middle] + bytes(4096) + whole[middle + 4096 :])
    damaged: list[str] = []
    assert stage_dataset(workspace.records, dataset, cache).files_copied == 0
    again = stage_dataset(workspace.records, dataset, cache, verify=True, damaged=damaged.append)
    assert (damaged, again.files_copied) == ([str(victim)], 1)
    assert victim.read_bytes() == whole
    # What had no checksum has one now: a change that leaves the PNG whole is found, too.
    other = next(path for path in copies(cache) if path != victim)
    other.write_bytes(other.read_bytes()[:-1] + b"x")
    stage_dataset(workspace.records, dataset, cache, verify=True, damaged=damaged.append)
    assert damaged == [str(victim), str(other)]


@pytest.mark.parametrize("lost", [errno.EIO, errno.EUCLEAN])
def test_a_staged_file_that_the_disk_has_lost_is_fetched_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """A bad sector under one file: the others are read all the same. Any other error is told."""
    dataset, cache = make(workspace), tmp_path / "cache"
    stage_dataset(workspace.records, dataset, cache)
    victim, readv = copies(cache)[7], os.readv
    number = victim.stat().st_ino

    def refuse(file: int, buffers: Sequence[memoryview]) -> int:
        if os.fstat(file).st_ino == number:
            raise OSError(lost, os.strerror(lost))
        return readv(file, buffers)

    monkeypatch.setattr(os, "readv", refuse)
    damaged: list[str] = []
    again = stage_dataset(workspace.records, dataset, cache, verify=True, damaged=damaged.append)
    assert (damaged, again.files_copied) == ([str(victim)], 1)
    number, lost = victim.stat().st_ino, errno.ENOLCK
    with pytest.raises(StorageError, match=r"No locks available \(verifying the cache\)"):
        stage_dataset(workspace.records, dataset, cache, verify=True)
    assert victim.exists()


def test_a_verification_that_is_cancelled_reads_no_more(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being read then ends; of all others none is begun."""
    dataset, cache = make(workspace), tmp_path / "cache"
    staged = stage_dataset(workspace.records, dataset, cache)
    plan = plan_staging(Manifest.read(Path(dataset.manifest)), cache, keep_present=True)
    first, read, go = plan.target(plan.present[0]), list[Path](), threading.Event()

    def fault_of(_verifier: Verifier, path: Path, *_: object) -> tuple[str, str]:
        read.append(path)
        assert path == first or go.wait(300)
        return "", "crc32:0"

    def shutdown(
        pool: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False
    ) -> None:
        ends(pool, wait=False, cancel_futures=cancel_futures)
        go.set()
        ends(pool, wait=wait)

    def cancelled(_: Progress) -> None:
        raise StagingCancelled("by a user")

    ends = ThreadPoolExecutor.shutdown
    monkeypatch.setattr(Verifier, "fault_of", fault_of)
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    with recording(cache, "own") as checksums, pytest.raises(StagingCancelled):
        without_damaged(plan, cache, checksums, 1, cancelled)
    assert 1 <= len(read) <= READ_AT_ONCE + 1 < staged.files


_KILLED = """
import sys
from pathlib import Path
from catalog.records.datasets import recorded_dataset
from pipeline.staging.stage import stage_dataset
from tests.pipeline.homes import open_home

workspace = open_home(Path(sys.argv[1]))
dataset = recorded_dataset(workspace.records, "streets")
print("begins", flush=True)
stage_dataset(workspace.records, dataset, Path(sys.argv[2]), workers=2)
"""


@pytest.mark.slow
def test_a_staging_killed_at_any_moment_shows_no_wrong_byte(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL at random, twelve times: what is visible is whole, and the next one goes on."""
    dataset, cache = make(workspace), tmp_path / "cache"
    clean = stage_dataset(workspace.records, dataset, tmp_path / "clean")
    right = {path.relative_to(tmp_path / "clean"): path for path in copies(tmp_path / "clean")}
    moments = random.Random(7)
    for _ in range(12):
        killed = Forked(["-c", _KILLED, str(workspace.home), str(cache)], stdout=subprocess.PIPE)
        assert killed.stdout is not None
        killed.stdout.readline()
        with suppress(subprocess.TimeoutExpired):
            killed.wait(moments.uniform(0.0, 0.3))
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        for path in copies(cache):
            assert path.read_bytes() == right[path.relative_to(cache)].read_bytes()
        shutil.rmtree(cache / ".manifests", ignore_errors=True)
        for path in copies(cache)[::2]:
            path.unlink()
    staging = stage_dataset(workspace.records, dataset, cache, verify=True)
    assert (staging.files, staging.bytes) == (clean.files, clean.bytes)
    assert len(copies(cache)) == len(right)
    # One that was killed before its beat was written had fetched nothing; it goes after a minute.
    assert list((cache / ".parts").glob("*/*.part")) == []
    monkeypatch.setattr("pipeline.cache.beat.EXPIRES_S", 0.0)
    stage_dataset(workspace.records, dataset, cache)
    assert list((cache / ".parts").iterdir()) == []


def test_a_file_that_frames_share_is_planned_once(workspace: Workspace, tmp_path: Path) -> None:
    """Named again it is the same file; with another version it is one more, named twice or not."""
    manifest = Manifest.read(Path(make(workspace).manifest))
    rows = manifest.frames
    place = rows.column_names.index("image_version")
    others = pa.array(["mtime:1"] * FRAMES, pa.string())
    changed = rows.set_column(place, rows.schema.field(place), others)
    plan = plan_staging(
        replace(manifest, frames=pa.concat_tables([rows, rows, changed, changed])), tmp_path
    )
    assert plan.files == len(plan.missing) == len(set(plan.missing)) == 3 * FRAMES
    assert sum(plan.files_of.values()) == 3 * FRAMES
