"""Files that archives hold: recalled from tape and restored in S3 before they are fetched."""

import json
import shutil
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import InvalidInput, StagingCancelled, StorageError
from catalog.records.datasets import recorded_dataset
from catalog.records.jobs import recorded_job
from catalog.records.sources import recorded_source
from catalog.records.tables import Staging
from ingest.scan.scan import ScanOptions, scan_source
from ingest.sources.archived import RestoreRequest
from ingest.sources.s3.s3_source import S3Folder
from ingest.sources.source_options import SourceOptions
from pipeline.afm.stage import AfmAccess, stage_to_afm
from pipeline.archive.migrate import Migrated, migrate_dataset
from pipeline.archive.recall import ArchiveAccess
from pipeline.jobs.backends.registry import BACKENDS
from pipeline.jobs.follow import refresh, wait
from pipeline.jobs.in_place import paths_in_use
from pipeline.manifest import Manifest
from pipeline.staging.concurrent import ConcurrentCallbacks
from pipeline.staging.fetch import FailedFile
from pipeline.staging.progress import Progress
from pipeline.staging.stage import stage_dataset
from pipeline.staging.stage_concurrently import ConcurrentOptions, SplitReading, stage_concurrently
from tests.ingest.s3_server import moto
from tests.pipeline import fake_eeadm, test_run
from tests.pipeline.fake_mmafmctl import evicted
from tests.pipeline.homes import open_home
from tests.pipeline.jobs import submit_training
from tests.pipeline.test_afm import FAKE as MMAFMCTL
from tests.pipeline.test_datasets import make
from tests.pipeline.test_staged_sources import draw_source

EEADM = (sys.executable, "-S", fake_eeadm.__file__, "recall")
MIGRATE = (*EEADM[:-1], "migrate", "{list}", "-p", "pool1")
FRAMES = 2


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A home, without a source yet."""
    monkeypatch.setattr("pipeline.archive.recall._FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("pipeline.staging.fetch._FIRST_PAUSE_S", 0.01)
    monkeypatch.setenv("FAKE_TAPE", str(tmp_path / "tape"))
    (tmp_path / "tape").mkdir()
    workspace = open_home(tmp_path / "home")
    yield workspace
    workspace.close()


def dataset_of(home: Workspace, uri: str, **options: str) -> None:
    """Add a source, catalog it, make a dataset of it."""
    Session(home, is_command=True).sources.add("archive", uri, **options)
    source = recorded_source(home.records, "archive")
    scan_source(home.whole_catalog, home.records, source, ScanOptions())
    make(home)


def stage(
    home: Workspace, access: ArchiveAccess, told: list[Progress], failed: list[FailedFile]
) -> Staging:
    """The dataset, staged into a cache."""
    dataset = recorded_dataset(home.records, "streets")
    return stage_dataset(
        home.records, dataset, home.home / "cache", archives=access,
        progress=told.append, failed=failed.append,
    )  # fmt: skip


def to_tape(root: Path, tape: Path) -> list[Path]:
    """Migrate a source's images: their content lies on tape, stubs stand for them."""
    images = sorted(root.glob("*/camera/*/*.png"))
    for path in images:
        on_tape = tape / str(path).removeprefix("/")
        on_tape.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, on_tape)
        evicted(path)
    return images


@pytest.mark.wide
def test_stubs_are_recalled_by_one_list_before_they_are_read(
    home: Workspace, tmp_path: Path
) -> None:
    """Of the missing files those without blocks; what is staged is not recalled again."""
    root = draw_source(tmp_path / "gpfs", 1)
    dataset_of(home, str(root))
    content = {path.name: path.read_bytes() for path in root.glob("*/camera/*/*.png")}
    images = to_tape(root, tmp_path / "tape")
    access = ArchiveAccess(EEADM, home.home / "lists")
    told: list[Progress] = []
    staging = stage(home, access, told, [])
    assert (tmp_path / "tape" / "log").read_text().splitlines() == [str(path) for path in images]
    manifest = Manifest.read(Path(staging.manifest))
    for file in manifest.images():
        assert Path(file.path).read_bytes() == content[f"{Path(file.path).stem[:-13]}.png"]
    assert [progress.recalling for progress in told][:1] == [FRAMES]
    assert told[-1].recalling == 0
    for path in images:
        evicted(path)
    stage(home, access, [], [])
    assert len((tmp_path / "tape" / "log").read_text().splitlines()) == FRAMES
    assert not [path for path in access.lists.iterdir() if path.suffix == ".txt"]


@pytest.mark.wide
def test_a_recall_that_fails_is_the_cause_of_a_files_failure(
    home: Workspace, tmp_path: Path
) -> None:
    """It is not read, which would recall it by itself; the others are staged."""
    root = draw_source(tmp_path / "gpfs", 1)
    dataset_of(home, str(root))
    images = to_tape(root, tmp_path / "tape")
    (tmp_path / "tape" / str(images[0]).removeprefix("/")).unlink()
    failed: list[FailedFile] = []
    access = ArchiveAccess(EEADM, home.home / "lists")
    with pytest.raises(StorageError, match=r"1 of 4 files .*eeadm.*1 file\(s\) failed"):
        stage(home, access, [], failed)
    (failure,) = failed
    assert failure.origin == str(images[0])
    assert "ended with exit code 1" in failure.reason
    images[0].write_bytes(b"recalled by hand")
    with pytest.raises(StorageError, match="has changed since the dataset was made"):
        stage(home, access, [], [])
    assert len((tmp_path / "tape" / "log").read_text().splitlines()) == FRAMES


@pytest.mark.wide
def test_what_a_job_stages_beside_itself_is_recalled_first(home: Workspace, tmp_path: Path) -> None:
    """Of its split, before a reader begins."""
    root = draw_source(tmp_path / "gpfs", 1)
    dataset_of(home, str(root))
    images = to_tape(root, tmp_path / "tape")
    dataset = recorded_dataset(home.records, "streets")
    (split,) = Manifest.read(Path(dataset.manifest)).header.splits
    told: list[Progress] = []
    stop = threading.Event()
    options = ConcurrentOptions(archives=ArchiveAccess(EEADM, home.home / "lists"), stop=stop)
    stage_concurrently(
        home.records, dataset, home.home / "cache", SplitReading(split, seed=0), options,
        ConcurrentCallbacks(stop.set, told.append, lambda _: None, lambda _: None), lambda _: None,
    )  # fmt: skip
    assert (tmp_path / "tape" / "log").read_text().splitlines() == [str(path) for path in images]
    assert FRAMES in [progress.recalling for progress in told]


@pytest.mark.wide
def test_without_a_command_stubs_are_read(home: Workspace, tmp_path: Path) -> None:
    """Their file system recalls them then; nothing is listed."""
    root = draw_source(tmp_path / "gpfs", 1)
    dataset_of(home, str(root))
    for path in to_tape(root, tmp_path / "tape"):
        status = path.stat()
        shutil.copy2(tmp_path / "tape" / str(path).removeprefix("/"), path)
        assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert stage(home, ArchiveAccess(), [], []).files_copied == 2 * FRAMES
    assert not (tmp_path / "tape" / "log").exists()


@pytest.mark.wide
def test_a_home_on_tape_is_recalled_before_afm_prefetches(
    home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else AFM would have every file recalled by its own read."""
    monkeypatch.setattr("pipeline.afm.stage._FIRST_LOOK_S", 0.01)
    root, junction = draw_source(tmp_path / "fs0", 1), tmp_path / "fs1" / "arc_fset"
    shutil.copytree(root, junction)
    (junction / ".afm").mkdir()
    dataset_of(home, str(root), mount=str(junction))
    content = {path.name: path.read_bytes() for path in root.glob("*/camera/*/*.png")}
    images = to_tape(root, tmp_path / "tape")
    for path in junction.rglob("*.png"):
        evicted(path)
    described = {"junction": str(junction), "home": str(root), "at_once": 9}
    (tmp_path / "filesets.json").write_text(json.dumps({"fs1/arc_fset": described}))
    monkeypatch.setenv("FAKE_AFM", str(tmp_path / "filesets.json"))
    told: list[Progress] = []
    stage_to_afm(
        home.records, recorded_dataset(home.records, "streets"), ["afm:fs1/arc_fset"],
        AfmAccess(MMAFMCTL, home.home / "lists"),
        archives=ArchiveAccess(EEADM, home.home / "lists"), progress=told.append,
    )  # fmt: skip
    assert (tmp_path / "tape" / "log").read_text().splitlines() == [str(path) for path in images]
    for path in junction.glob("*/camera/*/*.png"):
        assert path.read_bytes() == content[path.name]
    assert FRAMES in [progress.recalling for progress in told]


@pytest.fixture
def slow_archive() -> Iterator[None]:
    """The S3 server restores an object once it was looked at three times."""
    for progression in ({"progression": "manual", "times": 3}, {"progression": "immediate"}):
        told = {"model_name": "s3::keyrestore", "transition": progression}
        request = urllib.request.Request(
            f"{moto().endpoint}/moto-api/state-manager/set-transition",
            json.dumps(told).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=300).close()
        if progression["progression"] == "manual":
            yield


def put_to_glacier(home: Workspace, tmp_path: Path, bucket: str) -> Path:
    """A dataset of a bucket whose images are archived afterwards; the folder they come from."""
    server, root = moto(), draw_source(tmp_path / "drawn", 1)
    server.put_folder(server.new_bucket(bucket), root, "a2d2/")
    keys = {"endpoint_url": server.endpoint, "access_key": "testing", "secret_key": "testing"}
    dataset_of(home, f"s3://{bucket}/a2d2", **keys)
    for path in sorted(root.glob("*/camera/*/*.png")):
        key = f"a2d2/{path.relative_to(root)}"
        server.client().put_object(
            Bucket=bucket, Key=key, Body=path.read_bytes(), StorageClass="DEEP_ARCHIVE"
        )
    return root


@pytest.mark.wide
@pytest.mark.usefixtures("slow_archive")
def test_archived_objects_are_restored_and_awaited(home: Workspace, tmp_path: Path) -> None:
    """Each is asked for, the wait is shown, and every byte comes."""
    root = put_to_glacier(home, tmp_path, "glacier")
    told: list[Progress] = []
    access = ArchiveAccess(restore=RestoreRequest(days=3, tier="Bulk"))
    staging = stage(home, access, told, [])
    manifest = Manifest.read(Path(staging.manifest))
    for file in manifest.images():
        below = Path(file.path).relative_to(manifest.header.roots["archive"])
        at_home = root / below.parent / f"{below.stem[:-13]}.png"
        assert Path(file.path).read_bytes() == at_home.read_bytes()
    recalling = [progress.recalling for progress in told]
    assert recalling.count(FRAMES) >= 2
    assert (told[-1].recalling, told[-1].files) == (0, 2 * FRAMES)
    client = moto().client()
    for entry in client.list_objects_v2(Bucket="glacier")["Contents"]:
        about = client.head_object(Bucket="glacier", Key=entry["Key"])
        assert ("Restore" in about) == ("_camera_" in entry["Key"])


@pytest.mark.wide
@pytest.mark.usefixtures("slow_archive")
def test_a_wait_for_an_archive_can_be_cancelled(home: Workspace, tmp_path: Path) -> None:
    """What progress raises ends it; nothing was fetched."""
    put_to_glacier(home, tmp_path, "glacier-cancelled")

    def cancel(progress: Progress) -> None:
        if progress.recalling:
            raise StagingCancelled("it was cancelled")

    dataset = recorded_dataset(home.records, "streets")
    with pytest.raises(StagingCancelled):
        stage_dataset(home.records, dataset, home.home / "cache", progress=cancel)
    assert not list((home.home / "cache").rglob("*~*.png"))


def test_what_an_object_says_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can be read needs no request; one that is gone is named."""
    server, bucket = moto(), moto().new_bucket("restored")
    server.sign_in(monkeypatch, tmp_path)
    server.client().put_object(Bucket=bucket, Key="warm", Body=b"x")
    server.client().put_object(Bucket=bucket, Key="cold", Body=b"x", StorageClass="GLACIER")
    files = S3Folder(f"s3://{bucket}", SourceOptions(endpoint_url=server.endpoint))
    assert files.restored("warm", RestoreRequest())
    assert not files.restored("cold", RestoreRequest(days=2))
    assert files.restored("cold", RestoreRequest())
    with pytest.raises(Exception, match="gone"):
        files.restored("gone", RestoreRequest())
    (_, about) = "", server.client().head_object(Bucket=bucket, Key="cold")
    assert 'ongoing-request="false"' in about["Restore"]


@pytest.mark.wide
def test_a_datasets_files_go_back_to_tape_but_for_those_in_use(
    home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one list; what another job reads there stays, and what the archive refuses is counted."""
    root = draw_source(tmp_path / "gpfs", 1)
    dataset_of(home, str(root))
    images, labels = (sorted(root.glob(f"*/{kind}/*/*.png")) for kind in ("camera", "label"))
    on_tape, refused = images
    evicted(on_tape)
    refused.chmod(0o400)
    access = ArchiveAccess((), home.home / "lists", migrate=MIGRATE)
    records, dataset = home.records, recorded_dataset(home.records, "streets")
    monkeypatch.setitem(BACKENDS, "keeping", f"{test_run.__name__}:Keeping")
    reader = submit_training(
        records, home.job_queue, dataset, workers=1, name="reader", backend="keeping",
    )  # fmt: skip
    in_use = paths_in_use(records, "another")
    assert migrate_dataset(records, dataset, access, in_use) == Migrated(0, 0, 3, 0)
    assert paths_in_use(records, "reader") == set()
    (Path(reader.paths["folder"]) / "status.json").write_text('{"state": "done"}')
    refresh(records, reader)
    size = sum(path.stat().st_size for path in labels)
    migrated = migrate_dataset(records, dataset, access, paths_in_use(records, "another"))
    assert replace(migrated, cause="") == Migrated(2, size, 0, 1)
    assert "1 file(s) failed" in migrated.cause
    listed = (tmp_path / "tape" / "migrated").read_text().splitlines()
    assert sorted(listed) == sorted(str(path) for path in (refused, *labels))
    with pytest.raises(InvalidInput, match="FRAMESIFT_MIGRATE_COMMAND is not set"):
        migrate_dataset(records, dataset, ArchiveAccess())


@pytest.mark.wide
def test_a_job_recalls_what_it_reads_in_place_and_migrates_it_when_it_is_done(
    home: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One list before it runs, and one afterwards."""
    monkeypatch.setenv("FRAMESIFT_RECALL_COMMAND", " ".join(EEADM))
    monkeypatch.setenv("FRAMESIFT_MIGRATE_COMMAND", " ".join(MIGRATE))
    monkeypatch.setenv("FRAMESIFT_JOB_ENVIRONMENT", "FAKE_TAPE")
    root = draw_source(tmp_path / "gpfs", 1)
    dataset_of(home, str(root))
    images = to_tape(root, tmp_path / "tape")
    opened = open_home(home.home)
    jobs = Session(opened, is_command=True).jobs
    name = jobs.run("streets", "sh -c 'cat {files} > {job}/list.txt'", migrate=True).name
    job = wait(opened.records, recorded_job(opened.records, name), queue=opened.job_queue)
    assert [task.name for task in job.tasks] == ["stage", "prepare", "run", "migrate"]
    assert (tmp_path / "tape" / "log").read_text().splitlines() == [str(path) for path in images]
    assert not any(path.stat().st_blocks for path in root.rglob("*.png"))
    log = b"".join(jobs.log_chunks(name)).decode()
    assert "2 files were recalled from their archive" in log
    assert "4 files, " in log
    opened.close()


@pytest.mark.wide
def test_a_migration_without_a_command_is_refused_before_the_job(home: Workspace) -> None:
    """Whoever asks for it is told what to set."""
    dataset_of(home, str(draw_source(home.home.parent / "gpfs", 1)))
    jobs = Session(home, is_command=True).jobs
    with pytest.raises(InvalidInput, match="FRAMESIFT_MIGRATE_COMMAND is not set"):
        jobs.run("streets", "true", migrate=True)
    assert jobs.list() == []


def test_settings_of_archives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command, the days and the tier come from variables."""
    monkeypatch.setenv("FRAMESIFT_RECALL_COMMAND", "ssh archi@tape sudo eeadm recall")
    monkeypatch.setenv("FRAMESIFT_RESTORE_DAYS", "3")
    monkeypatch.setenv("FRAMESIFT_RESTORE_TIER", "Bulk")
    access = Workspace(Settings(home=tmp_path)).archive_access
    assert access.command == ("ssh", "archi@tape", "sudo", "eeadm", "recall")
    assert (access.restore, access.lists) == (RestoreRequest(3, "Bulk"), tmp_path / "lists")
