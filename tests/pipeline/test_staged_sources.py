"""Staging from every kind of source that is ingested, and from an S3 server that fails."""

import hashlib
import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import StorageError
from catalog.records.datasets import recorded_dataset
from catalog.records.sources import recorded_source
from catalog.records.tables import Dataset
from ingest.scan.scan import ScanOptions, scan_source
from pipeline.cache.checksums import recorded_checksums
from pipeline.manifest import Manifest
from pipeline.staging.fetch import FailedFile
from pipeline.staging.stage import stage_dataset
from tests.api.servers import framesift
from tests.ingest.faulty_s3 import FaultyS3, faulty_s3
from tests.ingest.s3_server import moto
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import make
from tests.training.drawn_frames import CLASS_LIST, draw_frames
from tests.training.drawn_home import TINY_JOB

FRAMES = 2
"""Of each source."""

SOURCES = ("folder", "tar", "s3", "s3tar")
SECRET = "never-in-a-manifest"


def draw_source(root: Path, number: int) -> Path:
    """A source's frames in a scene of their own; its folder."""
    scene = f"2026031{number}_130314"
    below = root / "camera_lidar_semantic"
    for frame, drawn in enumerate(draw_frames(root / "drawn", FRAMES, seed=number)):
        for kind, path in (("camera", drawn.image), ("label", drawn.label)):
            name = f"{scene.replace('_', '')}_{kind}_frontcenter_{frame:09d}.png"
            placed = below / scene / kind / "cam_front_center" / name
            placed.parent.mkdir(parents=True, exist_ok=True)
            (root / "drawn" / path).rename(placed)
    (below / "class_list.json").write_text(json.dumps(CLASS_LIST))
    return below


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultyS3]:
    """A proxy before moto, which every S3 source of this module is reached by."""
    with faulty_s3(moto().endpoint) as opened:
        yield opened


@pytest.fixture
def server(proxy: FaultyS3) -> Iterator[FaultyS3]:
    """The proxy, without faults at first."""
    proxy.fault = lambda _: ""
    proxy.reads.clear()
    yield proxy
    proxy.fault = lambda _: ""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """The drawn folder of each source, and the URI that it is added by."""
    base, bucket = tmp_path_factory.mktemp("sources"), "staged-sources"
    moto().new_bucket(bucket)
    roots = {}
    for number, name in enumerate(SOURCES):
        folder = draw_source(base / name, number)
        uri = str(folder)
        if "tar" in name:
            with tarfile.open(base / f"{name}.tar", "w") as archive:
                archive.add(folder, ".")
            uri = str(base / f"{name}.tar")
        if name == "s3":
            moto().put_folder(bucket, folder, "a2d2/")
            uri = f"s3://{bucket}/a2d2"
        if name == "s3tar":
            body = Path(uri).read_bytes()
            moto().client().put_object(Bucket=bucket, Key="packed/a2d2.tar", Body=body)
            uri = f"s3://{bucket}/packed/a2d2.tar"
        roots[name] = folder, uri
    return roots


@pytest.fixture(scope="module")
def home(
    proxy: FaultyS3,
    roots: dict[str, tuple[Path, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A home with a source of each kind, and the dataset "streets" of all of them."""
    return new_home(tmp_path_factory.mktemp("home") / "home", proxy, roots)


def new_home(home: Path, proxy: FaultyS3, roots: dict[str, tuple[Path, str]]) -> Path:
    """Make such a home; its folder."""
    workspace = open_home(home)
    for name, (_, uri) in roots.items():
        add(workspace, name, uri, proxy)
    make(workspace)
    workspace.close()
    return home


def add(workspace: Workspace, name: str, uri: str, proxy: FaultyS3) -> None:
    """Add a source and catalog it; one of S3 with keys of its own and little patience."""
    keys = {}
    if uri.startswith("s3:"):
        keys = {
            "endpoint_url": proxy.endpoint, "access_key": "testing", "secret_key": SECRET,
        }  # fmt: skip
    Session(workspace, is_command=True).sources.add(name, uri, **keys)
    source = recorded_source(workspace.records, name)
    if keys:
        with workspace.records.session() as session:
            source = session.merge(source)
            source.options = {**source.options, "give_up_after": 1.0}
    options = ScanOptions(index_folder=workspace.indexes)
    scan_source(workspace.whole_catalog, workspace.records, source, options)


@pytest.fixture
def workspace(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The home, opened; retries come at once."""
    monkeypatch.setattr("pipeline.staging.fetch._FIRST_PAUSE_S", 0.01)
    opened = open_home(home)
    yield opened
    opened.close()


def stage(workspace: Workspace, cache: Path, failed: list[FailedFile] | None = None) -> Manifest:
    """The dataset, staged."""
    told = (failed if failed is not None else []).append
    staging = stage_dataset(
        workspace.records, dataset(workspace), cache, indexes=workspace.indexes, failed=told
    )
    return Manifest.read(Path(staging.manifest))


def dataset(workspace: Workspace) -> Dataset:
    """The dataset of all sources."""
    return recorded_dataset(workspace.records, "streets")


def test_every_kind_of_source_is_staged(
    workspace: Workspace, server: FaultyS3, roots: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    """Byte for byte, from folder, tar, S3 and a tar in S3; a second time without any of them."""
    staged = stage(workspace, tmp_path / "cache")
    assert len(staged) == FRAMES * len(SOURCES)
    own = Manifest.read(Path(dataset(workspace).manifest))
    assert set(own.header.roots.values()) == {uri for _, uri in roots.values()}
    for there, here in zip(
        [*own.images(), *own.labels()], [*staged.images(), *staged.labels()], strict=True
    ):
        assert there is not None
        assert here is not None
        assert (roots[there.source][0] / there.key).read_bytes() == Path(here.path).read_bytes()
    server.fault = lambda _: "500"
    assert stage(workspace, tmp_path / "cache").frames.equals(staged.frames)


def test_entries_have_the_etags_md5_or_a_crc(workspace: Workspace, tmp_path: Path) -> None:
    """An object that is a file of its own has an MD5 as its ETag; nobody told one of the others."""
    cache = tmp_path / "cache"
    staged = stage(workspace, cache)
    recorded = recorded_checksums(cache)
    for place in [*staged.images(), *staged.labels()]:
        assert place is not None
        content = Path(place.path).read_bytes()
        if place.source == "s3":
            checksum = f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"
        else:
            checksum = f"crc32:{zlib.crc32(content):08x}"
        assert recorded.pop(str(Path(place.path).relative_to(cache))) == {checksum}
    assert not recorded


def test_no_key_leaves_the_records(workspace: Workspace, tmp_path: Path) -> None:
    """Neither manifest names a key, a sealed key or an endpoint."""
    stage(workspace, tmp_path / "cache")
    sealed = recorded_source(workspace.records, "s3").options["sealed_keys"]
    for folder in (tmp_path / "cache", workspace.home / "datasets"):
        for path in folder.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                for secret in (SECRET, sealed, "127.0.0.1"):
                    assert secret.encode() not in content, path


@pytest.mark.wide
@pytest.mark.parametrize("fault", ["500", "503", "stall", "short", "bytes"])
def test_what_fails_for_a_while_is_fetched_again(
    workspace: Workspace, server: FaultyS3, tmp_path: Path, fault: str
) -> None:
    """Each object once: an error, silence, half of it, another bit; the end is every byte."""
    met: set[str] = set()

    def once(path: str) -> str:
        if path in met:
            return ""
        met.add(path)
        return fault

    server.fault = once
    staged = stage(workspace, tmp_path / "cache")
    assert len(met) == 2 * FRAMES + 1
    server.fault = lambda _: ""
    clean = stage(workspace, tmp_path / "clean")
    for here, there in zip(staged.image_paths(), clean.image_paths(), strict=True):
        assert Path(here).read_bytes() == Path(there).read_bytes()


@pytest.mark.wide
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("500", "answers InternalError"),
        ("short", "broke off in the middle of its answer"),
        ("bytes", "another MD5 than its ETag says"),
    ],
)
def test_what_fails_for_good_is_named_and_the_rest_goes_on(
    workspace: Workspace, server: FaultyS3, tmp_path: Path, fault: str, reason: str
) -> None:
    """One object of S3 never comes right: no wrong byte is visible, all else is there."""
    bad = next(path for path in own_images(workspace) if path.startswith("s3://staged-sources/a"))
    key = bad.removeprefix("s3://staged-sources/")
    server.fault = lambda path: fault if unquote(path).endswith(key) else ""
    failed: list[FailedFile] = []
    with pytest.raises(StorageError, match=f"1 of 16 files could not be staged.*({reason})") as why:
        stage(workspace, tmp_path / "cache", failed)
    assert (why.value.path, [one.origin for one in failed]) == (bad, [bad])
    assert len(list((tmp_path / "cache").rglob("*.png"))) == 15
    assert not (tmp_path / "cache" / ".manifests").exists()
    server.fault = lambda _: ""
    server.reads.clear()
    stage(workspace, tmp_path / "cache")
    assert len(server.reads) == 1


def own_images(workspace: Workspace) -> list[str]:
    """Where the dataset's images lie."""
    return Manifest.read(Path(dataset(workspace).manifest)).image_paths()


@pytest.mark.wide
def test_a_source_that_is_down_ends_the_staging(
    workspace: Workspace, server: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every file of a million is tried; what came from others stays."""
    monkeypatch.setattr("pipeline.staging.fetch._FAILURES_IN_A_ROW", 2)
    server.fault = lambda path: "500" if "/a2d2/" in path else ""
    with pytest.raises(StorageError, match="source s3: fails for one file after another"):
        stage(workspace, tmp_path / "cache")
    server.fault = lambda _: ""
    stage(workspace, tmp_path / "cache")


def test_an_object_that_was_overwritten_is_refused(
    workspace: Workspace, server: FaultyS3, roots: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    """Another ETag, of as many bytes: named with both, nothing of it in the cache."""
    key = own_images(workspace)[0].removeprefix("s3://staged-sources/")
    images = [path for path in own_images(workspace) if path.startswith("s3://staged-sources/a")]
    key = images[0].removeprefix("s3://staged-sources/")
    client = moto().client()
    old = client.get_object(Bucket="staged-sources", Key=key)["Body"].read()
    try:
        client.put_object(Bucket="staged-sources", Key=key, Body=old[:-1] + b"x")
        with pytest.raises(StorageError, match=r"has changed since the dataset was made.*ETag.*E"):
            stage(workspace, tmp_path / "cache")
        assert len(list((tmp_path / "cache").rglob("*.png"))) == 15
    finally:
        client.put_object(Bucket="staged-sources", Key=key, Body=old)
    stage(workspace, tmp_path / "cache")


@pytest.mark.wide
def test_an_archive_whose_member_changed_is_refused(
    tmp_path: Path, server: FaultyS3, workspace: Workspace
) -> None:
    """Another time of one member: it alone is refused, for the archive is indexed again."""
    folder = draw_source(tmp_path / "drawn", 9)
    archive = tmp_path / "own.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(folder, ".")
    own = open_home(tmp_path / "home")
    add(own, "own", str(archive), server)
    source = make(own)
    image = sorted(folder.rglob("*camera_front*.png"))[0]
    image.write_bytes(image.read_bytes())
    with tarfile.open(archive, "w") as packed:
        packed.add(folder, ".")
    with pytest.raises(StorageError, match=r"1 of 4 files could not be staged.*has changed since"):
        stage_dataset(own.records, source, tmp_path / "cache", indexes=own.indexes)
    own.close()


@pytest.mark.training
def test_the_chain_from_every_kind_of_source_to_a_report(
    home: Path, server: FaultyS3, tmp_path: Path
) -> None:
    """Stage, train, validate by the commands that users type; no AWS variable anywhere."""
    cache = str(tmp_path / "cache")

    def done(*command: str) -> None:
        run = framesift(home, *command)
        assert run.returncode == 0, run.stderr

    done("stage", "streets", "--cache", cache)
    done(
        "train", "streets", "--max-steps", "2", "--batch-size", "2", "--workers", "1",
        "--name", "chain", *TINY_JOB,
    )  # fmt: skip
    done("validate", "chain", "streets", "--workers", "1", "--name", "scores", "--trust-model")
    report = json.loads((home / "jobs" / "scores" / "report" / "report.json").read_text())
    assert report["frames"] == FRAMES * len(SOURCES)


@pytest.mark.training
def test_a_job_stages_beside_itself_what_is_not_staged(
    server: FaultyS3, roots: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    """Train and validate read through from sources of every kind; only the staging has keys."""
    home = new_home(tmp_path / "home", server, roots)  # where nothing was staged before
    for command in (
        ["train", "streets", "--max-steps", "6", "--batch-size", "2", "--workers", "2",
         "--name", "beside", "--start-after", "20%", *TINY_JOB],
        ["validate", "beside", "streets", "--workers", "2", "--name", "scores-beside",
         "--trust-model"],
    ):  # fmt: skip
        run = framesift(home, *command)
        assert run.returncode == 0, run.stderr
    report = json.loads((home / "jobs" / "scores-beside" / "report" / "report.json").read_text())
    assert report["frames"] == FRAMES * len(SOURCES)
    shown = json.loads(framesift(home, "jobs", "show", "beside", "--json").stdout)
    staging = shown["metrics"]["staging"]
    assert staging["files"] == staging["of_files"] == 2 * FRAMES * len(SOURCES)
    assert shown["settings"]["start_after"] == 20
    # The validation found everything there.
    scores = json.loads(framesift(home, "jobs", "show", "scores-beside", "--json").stdout)
    assert scores["metrics"]["staging"]["fetched_bytes"] == 0
    for job in ("beside", "scores-beside"):
        for path in (home / "jobs" / job).rglob("*"):
            assert not path.is_file() or SECRET.encode() not in path.read_bytes()


@pytest.mark.wide
@pytest.mark.parametrize("odd", ["/slip/", "good/../", f"{'x' * 260}/"])
def test_a_name_that_no_cache_can_hold_fails_alone(
    odd: str, proxy: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of objects may be what no path can be: such a file is named, and the others come."""
    monkeypatch.setattr("pipeline.staging.fetch._FIRST_PAUSE_S", 0.01)
    folder, bucket = draw_source(tmp_path / "drawn", 1), moto().new_bucket("odd-names")
    client, odd_images = moto().client(), []
    for path in sorted(folder.rglob("*.*")):
        is_odd = "_000000001." in path.name
        key = f"{odd if is_odd else ''}{path.relative_to(folder)}"
        client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
        odd_images += [f"s3://{bucket}/{key}"] if is_odd and "/camera/" in key else []
    workspace = open_home(tmp_path / "home")
    add(workspace, "odd", f"s3://{bucket}", proxy)
    make(workspace)
    failed: list[FailedFile] = []
    with pytest.raises(StorageError, match="2 of 4 files could not be staged"):
        stage(workspace, tmp_path / "cache", failed)
    assert odd_images[0] in {one.origin for one in failed}
    assert all("rename it, or leave it out" in one.reason for one in failed)
    there = {path.name.partition("~")[0] for path in tmp_path.glob("cache/*:*/**/*.png")}
    whole = {path.stem for path in folder.rglob("*.png") if "_000000000." in path.name}
    assert there == whole
    assert {path.name for path in tmp_path.iterdir()} == {"drawn", "home", "cache"}
    workspace.close()
