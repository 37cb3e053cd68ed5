"""Jobs that read a dataset's files where its sources are mounted, without staging."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.schemas.jobs import JobBody
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import BadFile, InvalidInput, StorageError
from catalog.records.datasets import recorded_dataset
from catalog.records.jobs import recorded_job
from catalog.records.sources import recorded_source
from catalog.records.tables import Job
from ingest.scan.scan import ScanOptions, scan_source
from ingest.sources.mount import Mount
from ingest.sources.source_options import SourceOptions
from pipeline.jobs.backends.registry import BACKENDS
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames
from pipeline.staging.stage import stage_dataset
from tests.ingest.s3_server import moto
from tests.pipeline import test_run
from tests.pipeline.homes import open_home
from tests.pipeline.jobs import submit_training, submit_validation
from tests.pipeline.test_datasets import make
from tests.pipeline.test_staged_sources import draw_source

pytestmark = pytest.mark.wide
TRAIN = {"workers": 1, "max_steps": 1}


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the bucket's objects lie on a mounted file system."""
    return draw_source(tmp_path_factory.mktemp("gpfs"), 1)


@pytest.fixture
def home(mounted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A home with a source in S3 and one in a folder, and the dataset "streets" of both."""
    monkeypatch.setitem(BACKENDS, "keeping", f"{test_run.__name__}:Keeping")
    server, bucket = moto(), moto().new_bucket("mounted")
    server.put_folder(bucket, mounted, "a2d2/")
    workspace = open_home(tmp_path / "home")
    sources = Session(workspace, is_command=True).sources
    keys = {"endpoint_url": server.endpoint, "access_key": "testing", "secret_key": "testing"}
    sources.add("cos", f"s3://{bucket}/a2d2", **keys)
    sources.add("folder", str(draw_source(tmp_path / "folder", 2)))
    for name in ("cos", "folder"):
        source = recorded_source(workspace.records, name)
        scan_source(workspace.whole_catalog, workspace.records, source, ScanOptions())
    make(workspace)
    yield workspace
    workspace.close()


def mount(home: Workspace, at: object) -> str:
    """Say where the bucket is mounted; as it is recorded."""
    change = Session(home, is_command=True).sources.change
    return change("cos", mount=str(at)).mount


def train(home: Workspace) -> Job:
    """A training without staging, submitted."""
    dataset = recorded_dataset(home.records, "streets")
    return submit_training(
        home.records, home.job_queue, dataset, stage=False, backend="keeping", **TRAIN
    )


def manifest_of(job: Job) -> Manifest:
    """The manifest that the job's command is given."""
    (stage,) = job.request["stages"]
    (command,) = stage["commands"]
    folder = command[command.index("--manifest") + 1]
    assert folder == job.paths["manifest"]
    return Manifest.read(Path(folder))


def test_frames_are_read_where_they_are_mounted(home: Workspace, mounted: Path) -> None:
    """Of a bucket at its mount, of a folder where it lies, though both are staged as well."""
    dataset = recorded_dataset(home.records, "streets")
    stage_dataset(home.records, dataset, home.home / "cache")
    mount(home, mounted)
    job = train(home)
    manifest = manifest_of(job)
    folder = recorded_source(home.records, "folder").uri
    assert manifest.header.roots == {"cos": str(mounted), "folder": folder}
    assert (manifest.header.id, manifest.header.staged) == (dataset.content_id, False)
    palette = manifest.header.dataset_classes
    frames = DecodedFrames(manifest, palette)
    for row in range(len(manifest)):
        image = frames.image(row)
        assert frames.label(row, (image.shape[0], image.shape[1])).size
    recorded = JobBody.of(recorded_job(home.records, job.name))
    assert recorded.settings["stage"] is False
    assert recorded.paths["mount:cos"] == str(mounted)
    assert recorded.paths["mount:folder"] == folder
    staged = submit_training(home.records, home.job_queue, dataset, backend="keeping", **TRAIN)
    assert manifest_of(staged).header.staged
    assert "stage" not in staged.request["settings"]
    assert list(staged.request["reads"].values()) == ["streets@1"]


def test_a_file_that_changed_at_the_mount(home: Workspace, mounted: Path, tmp_path: Path) -> None:
    """An object's ETag cannot be compared there; its size is, and a folder's times are."""
    copy = tmp_path / "copy"
    shutil.copytree(mounted, copy)
    mount(home, copy)
    manifest = manifest_of(train(home))
    versions = {(file.source, (file.version or "")[:6]) for file in manifest.images()}
    assert versions == {("cos", "size"), ("folder", "mtime:")}
    (row, file), *_ = [
        (row, file) for row, file in enumerate(manifest.images()) if file.source == "cos"
    ]
    with Path(file.path).open("ab") as longer:
        longer.write(b"x")
    with pytest.raises(BadFile, match="has changed since the dataset was made"):
        DecodedFrames(manifest, manifest.header.dataset_classes).image(row)


def test_jobs_in_containers_read_the_folder_there(home: Workspace, mounted: Path) -> None:
    """Both paths are recorded; this host need not have the container's."""
    assert mount(home, f"{mounted}/:/data/a2d2/") == f"{mounted}:/data/a2d2"
    settings = replace(home.settings, jobs_in_container=True)
    job = train(Workspace(settings))
    assert manifest_of(job).header.roots["cos"] == "/data/a2d2"
    assert job.paths["mount:cos"] == f"{mounted}:/data/a2d2"
    assert manifest_of(train(home)).header.roots["cos"] == str(mounted)


def test_a_job_goes_on_where_its_source_is_mounted_now(
    home: Workspace, mounted: Path, tmp_path: Path
) -> None:
    """With other workers it is planned again: it finds the manifest of the new mount."""
    mount(home, mounted)
    job = train(home)
    test_run.failed(home, job.name)
    moved = tmp_path / "moved"
    shutil.copytree(mounted, moved)
    mount(home, moved)
    Session(home, is_command=True).jobs.resume(job.name, bad_frames="skip:3")
    again = recorded_job(home.records, job.name)
    assert again.paths["mount:cos"] == str(moved)
    assert manifest_of(again).header.roots["cos"] == str(moved)


def test_what_is_not_mounted(home: Workspace, mounted: Path, tmp_path: Path) -> None:
    """No mount, one that is away, one that begins elsewhere: each is named, and no job begins."""
    with pytest.raises(InvalidInput, match=r"cos \(s3://mounted/a2d2\).*--mount HOST_FOLDER"):
        train(home)
    mount(home, tmp_path / "away")
    with pytest.raises(StorageError, match=r"away/.*source cos is read at .*is it mounted\?"):
        train(home)
    mount(home, mounted.parent)
    with pytest.raises(StorageError, match="source cos is read at"):
        train(home)
    assert mount(home, "") == ""
    model = test_run.model_folder(tmp_path / "model")
    dataset = recorded_dataset(home.records, "streets")
    with pytest.raises(InvalidInput, match="no folder of a mounted file system"):
        submit_validation(home.records, home.job_queue, str(model), dataset, stage=False)
    assert not list(home.jobs.glob("*/request.json"))


@pytest.mark.parametrize("text", ["gpfs/x", "/a:b", "/a:/b:/c", "/a/../b", ":/a", "/a:"])
def test_what_is_no_mount(text: str) -> None:
    """Absolute folders only, two at most; the message shows one."""
    with pytest.raises(InvalidInput, match=r"expected HOST_FOLDER\[:FOLDER_IN_CONTAINER\]"):
        SourceOptions(mount=text)
    assert str(Mount.parse("/a//b/:/a/b")) == "/a/b"


def test_the_mount_is_shown_and_stays(home: Workspace, mounted: Path) -> None:
    """Of a source among its options, also after it was moved."""
    mount(home, mounted)
    sources = Session(home, is_command=True).sources
    assert sources.get("cos").options["mount"] == str(mounted)
    moved = sources.change("folder", uri=recorded_source(home.records, "folder").uri, mount="/x")
    assert json.loads(moved.model_dump_json())["mount"] == "/x"
