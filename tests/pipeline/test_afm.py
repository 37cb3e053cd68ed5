"""Datasets in AFM filesets, by a program that is as strict as the manual of mmafmctl."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from api.schemas import home_orders
from api.schemas.stagings import RunningStagingBody
from api.services.session import Session
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import InUse, InvalidInput, StagingCancelled, StorageError
from catalog.records.datasets import recorded_dataset
from catalog.records.jobs import recorded_job
from catalog.records.sources import recorded_source
from catalog.records.tables import Staging
from framesift import connect
from ingest.scan.scan import ScanOptions, scan_source
from pipeline.afm.mmafmctl import Mmafmctl, PrefetchOptions
from pipeline.afm.stage import AfmAccess, evict_from_afm, stage_to_afm
from pipeline.afm.target import Fileset, filesets_of
from pipeline.jobs.backends.registry import BACKENDS
from pipeline.jobs.follow import cancel, refresh
from pipeline.manifest import Manifest
from pipeline.staging.fetch import FailedFile
from pipeline.staging.progress import Progress
from tests.api.servers import framesift, serving
from tests.pipeline import fake_mmafmctl, test_run
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.jobs import submit_training
from tests.pipeline.test_datasets import make
from tests.pipeline.test_staged_sources import draw_source

FAKE = (sys.executable, "-S", fake_mmafmctl.__file__)
TARGETS = ("nas=afm:fs1/nas_fset", "cos=afm:fs1/cos_fset")
TO = [word for target in TARGETS for word in ("--to", target)]
NAMES = ("cos", "nas")
FRAMES = 2
"""Of each source."""


@dataclass(frozen=True)
class Storage:
    """Two filesets that show the homes of two sources, nothing of them cached.

    Attributes:
        workspace: A home with the sources, their mounts, and the dataset "streets" of both.
        home: Folder of each source.
        junction: Where each source's fileset is mounted.
        described: What the fake command knows of filesets.
    """

    workspace: Workspace
    home: dict[str, Path]
    junction: dict[str, Path]
    described: Path

    def change(self, name: str, **fields: Any) -> None:
        """Have a fileset behave otherwise."""
        filesets = json.loads(self.described.read_text())
        filesets[f"fs1/{name}_fset"] |= fields
        self.described.write_text(json.dumps(filesets))

    def commands(self, name: str) -> list[list[str]]:
        """What was asked of a fileset, without looks at its statistics."""
        log = self.junction[name] / ".afm" / "log"
        asked = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [words for words in asked if len(words) > 4]

    def access(self, **more: Any) -> AfmAccess:
        """How AFM is reached."""
        lists = self.workspace.home / "lists"
        return AfmAccess(FAKE, lists, cos_command=(*FAKE, "mmafmcosctl"), **more)

    def stage(self, *targets: str, access: AfmAccess | None = None, **more: Any) -> Staging:
        """The dataset, brought into the filesets."""
        records = self.workspace.records
        dataset = recorded_dataset(records, "streets")
        targets = targets or TARGETS
        return stage_to_afm(records, dataset, targets, access or self.access(), **more)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of homes and filesets, and of a home that catalogued them; not to be changed."""
    folder = tmp_path_factory.mktemp("afm")
    workspace = open_home(folder / "home")
    for number, name in enumerate(NAMES, start=1):
        root = draw_source(folder / name, number)
        junction = folder / "gpfs" / f"{name}_fset"
        shutil.copytree(root, junction)
        Session(workspace, is_command=True).sources.add(name, str(root), mount=str(junction))
        source = recorded_source(workspace.records, name)
        scan_source(workspace.whole_catalog, workspace.records, source, ScanOptions())
    make(workspace)
    workspace.close()
    return folder


@pytest.fixture
def storage(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """Homes, filesets without a file cached, and a dataset."""
    monkeypatch.setattr("pipeline.afm.stage._FIRST_LOOK_S", 0.01)
    workspace = open_home(copy_home(template / "home", tmp_path))
    homes = {name: template / name / "camera_lidar_semantic" for name in NAMES}
    junctions = {name: template / "gpfs" / f"{name}_fset" for name in NAMES}
    described = {}
    for name, junction in junctions.items():
        shutil.rmtree(junction)
        shutil.copytree(homes[name], junction)
        (junction / ".afm").mkdir()
        for path in junction.rglob("*.png"):
            fake_mmafmctl.evicted(path)
        described[f"fs1/{name}_fset"] = {
            "junction": str(junction), "home": str(homes[name]), "at_once": 3,
        }  # fmt: skip
    monkeypatch.setenv("FAKE_AFM", str(tmp_path / "filesets.json"))
    (tmp_path / "filesets.json").write_text(json.dumps(described))
    yield Storage(workspace, homes, junctions, tmp_path / "filesets.json")
    workspace.close()


@pytest.mark.wide
def test_a_staging_into_afm_is_listed_and_cancelled(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the running stagings of the home's cache, with its plan; one that failed is kept."""
    monkeypatch.setattr("pipeline.cache.running.REPORT_EVERY_S", 0.0)
    stagings = Session(storage.workspace, is_command=True).stagings
    cache, listed = storage.workspace.cache, list[RunningStagingBody]()

    def cancels(_progress: Progress) -> None:
        listed.extend(stagings.running())
        stagings.cancel(listed[-1].name)

    with pytest.raises(StagingCancelled):
        storage.stage(progress=cancels, cache=cache, user="ada")
    assert listed[0].plan is not None
    assert (listed[0].dataset, listed[0].user, listed[0].plan.missing_files) == (
        "streets@1", "ada", 4 * FRAMES,
    )  # fmt: skip
    assert (stagings.running(), stagings.list()) == ([], [])
    records, fails = storage.workspace.records, AfmAccess(("false",), storage.access().lists)
    with pytest.raises(StorageError) as failed:
        stage_to_afm(records, recorded_dataset(records, "streets"), TARGETS, fails, cache=cache)
    (kept,) = stagings.list()
    assert (kept.state, kept.error) == ("failed", str(failed.value))


def test_a_dataset_is_brought_into_filesets(storage: Storage) -> None:
    """Its files and no others, by one list for each fileset; jobs then read them there."""
    told: list[Progress] = []
    staging = storage.stage(progress=told.append, workers=9)
    for name in ("cos", "nas"):
        (words,) = storage.commands(name)
        listed = words[words.index("--list-file") + 1]
        assert words == [
            "fs1", "prefetch", "-j", f"{name}_fset", "--enable-failed-file-list",
            "--list-file", listed, "--prefetch-threads", "9",
        ]  # fmt: skip
        assert Path(listed).parent == storage.workspace.home / "lists"
        assert not Path(listed).exists()
    manifest = Manifest.read(Path(staging.manifest))
    files = [*manifest.images(), *(file for file in manifest.labels() if file)]
    for file in files:
        assert Path(file.path).is_relative_to(storage.junction[file.source])
        content = (storage.home[file.source] / file.key).read_bytes()
        assert Path(file.path).read_bytes() == content
    assert (staging.files, staging.files_copied) == (4 * FRAMES, 4 * FRAMES)
    assert staging.cache == "afm:fs1/cos_fset, afm:fs1/nas_fset"
    first, last = told[0], told[-1]
    assert (first.files, last.files, last.of_files, last.failed) == (0, 8, 8, 0)
    assert last.bytes == last.of_bytes == last.fetched_bytes == staging.bytes
    assert [p.files for p in told] == sorted(p.files for p in told)
    assert any(0 < p.files < 4 for p in told)


def test_a_site_says_gateway_and_force(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the proof of concept ran it: options of the prefetch alone, from variables."""
    monkeypatch.setenv("FRAMESIFT_AFM_GATEWAY", "local")
    monkeypatch.setenv("FRAMESIFT_AFM_FORCE", "true")
    options = Workspace(Settings(home=storage.workspace.home)).afm_access.prefetch
    assert options == PrefetchOptions("local", force=True)
    storage.stage(access=storage.access(prefetch=options), workers=16)
    for name in NAMES:
        (words,) = storage.commands(name)
        listed = words[words.index("--list-file") + 1]
        assert words == [
            "fs1", "prefetch", "-j", f"{name}_fset", "--enable-failed-file-list",
            "--list-file", listed, "--force", "--gateway", "local", "--prefetch-threads", "16",
        ]  # fmt: skip
    monkeypatch.setenv("FRAMESIFT_AFM_GATEWAY", "gw1; rm")
    with pytest.raises(ValueError, match="afm_gateway"):
        Settings(home=storage.workspace.home)


@pytest.mark.wide
def test_objects_come_and_go_by_mmafmcosctl(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a fileset that shows no object before it is downloaded; another one's by mmafmctl."""
    targets = ("nas=afm:fs1/nas_fset", "cos=afmcos:fs1/cos_fset")
    with pytest.raises(StorageError, match="is not an AFM to cloud object storage fileset"):
        storage.stage(*targets)
    storage.change("cos", cos=True)
    (storage.junction["cos"] / ".afm" / "log").unlink()
    image = next(storage.junction["cos"].rglob("*_camera_*.png"))
    image.unlink()
    staging = storage.stage(*targets, workers=7)
    (words,) = storage.commands("cos")
    listed = words[words.index("--object-list") + 1]
    assert words == [
        "mmafmcosctl", "fs1", "cos_fset", str(storage.junction["cos"]), "download",
        "--object-list", listed, "--threads", "7", "--enable-failed-object-list",
    ]  # fmt: skip
    assert staging.cache == "afmcos:fs1/cos_fset, afm:fs1/nas_fset"
    files = Manifest.read(Path(staging.manifest)).images()
    assert all(Path(file.path).stat().st_blocks for file in files)
    records = storage.workspace.records
    dataset = recorded_dataset(records, "streets")
    evicted = evict_from_afm(records, dataset, targets, storage.access())
    assert (evicted.files, storage.commands("cos")[-1][4]) == (4 * FRAMES, "evict")
    assert not image.stat().st_blocks
    monkeypatch.setenv("FRAMESIFT_AFM_COS_COMMAND", "ssh root@ess mmafmcosctl")
    access = Workspace(Settings(home=storage.workspace.home)).afm_access
    assert access.cos_command == ("ssh", "root@ess", "mmafmcosctl")


def test_what_filesets_have_cached_is_listed(storage: Storage) -> None:
    """Each file of the dataset by its blocks, without a command of AFM; the others likewise."""
    cache = Session(storage.workspace, is_command=True).cache
    labels = {
        (name, path.relative_to(storage.junction[name]).as_posix())
        for name in NAMES
        for path in storage.junction[name].rglob("*_label_*.png")
    }
    assert cache.contents("streets", filesets=TARGETS) == []
    storage.stage()
    image = next(storage.junction["nas"].rglob("*_camera_*.png"))
    fake_mmafmctl.evicted(image)
    asked = {name: len(storage.commands(name)) for name in NAMES}
    (missing,) = cache.contents("streets", filesets=TARGETS, missing=True)
    key = image.relative_to(storage.junction["nas"]).as_posix()
    assert (missing.source, missing.file, missing.bytes) == ("nas", key, image.stat().st_size)
    cached = {(file.source, file.file) for file in cache.contents("streets", filesets=TARGETS)}
    assert len(cached) == 4 * FRAMES - 1
    assert labels < cached
    assert ("nas", key) not in cached
    assert {name: len(storage.commands(name)) for name in NAMES} == asked
    assert cache.contents("streets") == []  # nothing of it is in the own cache


def test_what_is_cached_is_not_listed_again(storage: Storage) -> None:
    """A second staging asks AFM for what it cannot tell of alone: labels of a few bytes."""
    storage.stage()
    evicted = next(storage.junction["cos"].rglob("*_camera_*.png"))
    fake_mmafmctl.evicted(evicted)
    again = storage.stage()
    assert (
        evicted.read_bytes()
        == storage.home["cos"].joinpath(evicted.relative_to(storage.junction["cos"])).read_bytes()
    )
    assert again.files_copied == 1
    assert [len(storage.commands(name)) for name in ("cos", "nas")] == [2, 1]


def test_files_that_afm_cannot_have(storage: Storage) -> None:
    """Each is named with its cause, the others come, and the next staging does the rest."""
    gone = next(storage.home["nas"].rglob("*_camera_*.png"))
    gone.rename(gone.with_suffix(".away"))
    changed = next(storage.junction["cos"].rglob("*_camera_*.png"))
    at_home = storage.home["cos"] / changed.relative_to(storage.junction["cos"])
    was = at_home.stat()
    os.utime(at_home, (1, 1))
    failures: list[FailedFile] = []
    told: list[Progress] = []
    with pytest.raises(StorageError, match="2 of 8 files could not be staged; the first is"):
        storage.stage(failed=failures.append, progress=told.append)
    assert (told[-1].failed, told[-1].queued, told[-1].eta_s) == (2, 0, 0)
    by_place = {failure.origin: failure.reason for failure in failures}
    missing = storage.junction["nas"] / gone.relative_to(storage.home["nas"])
    assert "AFM could not fetch it into afm:fs1/nas_fset: is not cached" in by_place[str(missing)]
    assert "has changed since the dataset was made" in by_place[str(changed)]
    gone.with_suffix(".away").rename(gone)
    os.utime(at_home, ns=(was.st_atime_ns, was.st_mtime_ns))
    with pytest.raises(StorageError, match="1 of 8 files could not be staged"):
        storage.stage()


def test_a_command_that_fails(storage: Storage) -> None:
    """Its message and its command line are shown; one that is not there says what to set."""
    with pytest.raises(StorageError, match=r"prefetch -j cos_fset .* not in the fileset$"):
        storage.stage("afm:fs1/cos_fset")  # of both sources
    access = AfmAccess(("/no/mmafmctl",), storage.workspace.home / "lists")
    dataset = recorded_dataset(storage.workspace.records, "streets")
    with pytest.raises(InvalidInput, match=r"/no/mmafmctl: No such file.*FRAMESIFT_AFM_COMMAND"):
        stage_to_afm(storage.workspace.records, dataset, ["afm:fs1/cos_fset"], access)
    assert not [path for path in access.lists.iterdir() if path.suffix == ".txt"]


@pytest.mark.wide
def test_a_misspelt_fileset_is_noticed_where_all_files_are_cached(storage: Storage) -> None:
    """By a staging and by an eviction, before they do anything; the message says what to do."""
    storage.stage()
    asked = {name: len(storage.commands(name)) for name in NAMES}
    records = storage.workspace.records
    dataset = recorded_dataset(records, "streets")
    for target, name, device in (
        ("fs1/nas_fst", "nas_fst", "fs1"),
        ("fs/nas_fset", "nas_fset", "fs"),
    ):
        targets = ["cos=afm:fs1/cos_fset", f"nas=afm:{target}"]
        expected = (
            rf"{device} getstate -j {name}: ended with exit code 1: .*Fileset {name} is not .* of "
            rf"{device}\.; expected an AFM fileset: mmlsfileset {device} --afm -L lists"
        )
        with pytest.raises(StorageError, match=expected):
            storage.stage(*targets)
        with pytest.raises(StorageError, match=expected):
            evict_from_afm(records, dataset, targets, storage.access())
    assert {name: len(storage.commands(name)) for name in NAMES} == asked


def test_odd_names_are_escaped_as_policies_do(storage: Storage) -> None:
    """Line breaks and backslashes; a list with them cannot be evicted, and says so."""
    junction = storage.junction["cos"]
    for name in ("a\nb.png", "c\\d.png"):
        (storage.home["cos"] / name).write_bytes(b"x" * 9_000)
        (junction / name).write_bytes(b"x" * 9_000)
        fake_mmafmctl.evicted(junction / name)
    lists = storage.workspace.home / "lists"
    lists.mkdir()
    names = lists / "odd.txt"
    names.write_text(f"{junction}/a\\nb.png\n{junction}/c\\\\d.png\n")
    mmafmctl, fileset = Mmafmctl(FAKE), Fileset("fs1", "cos_fset")
    mmafmctl.prefetch(fileset, names, threads=999, is_escaped=True, queued=lambda _: None)
    while mmafmctl.statistics(fileset).pending:
        pass
    assert (junction / "a\nb.png").stat().st_blocks
    with pytest.raises(StorageError, match="special characters; use a policy"):
        mmafmctl.prefetch(fileset, names, threads=1, is_escaped=False, queued=lambda _: None)


def test_statistics_of_other_releases(storage: Storage, tmp_path: Path) -> None:
    """Columns are told by their headings; something else is refused with what was printed."""
    program = tmp_path / "printing"
    heading = "Fileset Name  Async Read (New)  Async Read (Data in Bytes)  Async Read (Pending)"
    more = "Async Read (Failed)  Async Read (Total)  Async Read (Already Cached)"
    program.write_text(f"#!/bin/sh\necho '{heading}  {more}'\necho '----'\necho 'f 1 2 3 4 5 6'\n")
    program.chmod(0o755)
    found = Mmafmctl([str(program)]).statistics(Fileset("fs", "f"))
    assert (found.bytes, found.pending, found.failed, found.total, found.cached) == (2, 3, 4, 5, 6)
    with pytest.raises(StorageError, match="printed no statistics of a prefetch: Fileset Name"):
        Mmafmctl([str(program)]).statistics(Fileset("fs", "g"))


@pytest.mark.wide
def test_eviction(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files lose their blocks, unless a job reads them or home has not got them."""
    storage.stage()
    records, dataset = (
        storage.workspace.records,
        recorded_dataset(storage.workspace.records, "streets"),
    )
    monkeypatch.setitem(BACKENDS, "keeping", f"{test_run.__name__}:Keeping")
    job = submit_training(
        records, storage.workspace.job_queue, dataset,
        workers=1, name="reader", backend="keeping",
    )  # fmt: skip
    assert Manifest.read(Path(job.paths["manifest"])).header.roots == {
        name: str(folder) for name, folder in storage.junction.items()
    }
    with pytest.raises(InUse, match="job reader reads it at its sources' mounts"):
        evict_from_afm(records, dataset, TARGETS, storage.access())
    (Path(job.paths["folder"]) / "status.json").write_text('{"state": "done"}')
    refresh(records, job)
    dirty = next(storage.junction["nas"].rglob("*_camera_*.png"))
    storage.change("nas", dirty=[str(dirty)])
    with pytest.raises(StorageError, match="1 files stay cached"):
        evict_from_afm(records, dataset, TARGETS, storage.access())
    assert dirty.stat().st_blocks
    storage.change("nas", dirty=[])
    evicted = evict_from_afm(records, dataset, TARGETS, storage.access())
    assert (evicted.files, evicted.bytes) == (1, dirty.stat().st_size)
    assert not dirty.stat().st_blocks


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        (["fs1/a"], "expected"),
        (["afm:fs1"], "expected"),
        (["afm:fs1/a;b"], "expected"),
        (["afm:-x/a"], "expected"),
        (["=afm:fs1/a"], "expected"),
        (["x=afm:fs1/a"], "has no files of source 'x'"),
        (["afmcos:fs1"], "expected"),
        (["a=afm:fs1/a"], "no target for source b"),
        (["afm:fs1/a", "afm:fs1/b"], "has a target already"),
    ],
)
def test_what_is_no_target(targets: list[str], reason: str) -> None:
    """Each source has one fileset; names mean nothing to a shell."""
    with pytest.raises(InvalidInput, match=reason):
        filesets_of(targets, ["a", "b"])
    both = filesets_of(["afm:fs1/x", "b=afmcos:fs2/y"], ["a", "b"])
    assert both == {"a": Fileset("fs1", "x"), "b": Fileset("fs2", "y", is_cos=True)}


@pytest.mark.wide
def test_by_command(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """`stage --to` and `cache evict --from`, by the settings' command; on a server, too."""
    variables = {
        "FAKE_AFM": str(storage.described),
        "FRAMESIFT_AFM_COMMAND": " ".join(FAKE),
        "FRAMESIFT_LIST_FOLDER": str(storage.described.parent / "lists"),
        "FRAMESIFT_JOB_ENVIRONMENT": "FAKE_AFM",
    }
    home = storage.workspace.home
    storage.workspace.close()
    run = framesift(home, "stage", "streets", *TO, "--json", variables=variables)
    assert run.returncode == 0, run.stderr
    staged = json.loads(run.stdout)
    assert (staged["files"], staged["files_copied"]) == (8, 8)
    assert staged["cache"] == "afm:fs1/cos_fset, afm:fs1/nas_fset"
    released = [word.replace("--to", "--from") for word in TO]
    run = framesift(home, "cache", "evict", "streets", *released, variables=variables)
    assert run.stdout.startswith(f"evicted streets@1: {4 * FRAMES} files, "), run.stderr
    with serving(home, variables=variables) as (url, _):
        client = connect(url)
        job = client.datasets.get("streets").stage(to=TARGETS)
        assert job.wait(progress=False)["metrics"]["files_copied"] == 4 * FRAMES
        found = client.cache.evict("streets", filesets=TARGETS)
        assert (found["dataset"], found["files"]) == ("streets@1", 4 * FRAMES)
    monkeypatch.setenv("FRAMESIFT_AFM_COMMAND", "ssh 'root@a b' mmafmctl")
    assert Settings(home=home).afm_command == ("ssh", "root@a b", "mmafmctl")


def test_by_rest(storage: Storage) -> None:
    """A target is checked when it is asked for; the job's order has it."""
    stagings = Session(storage.workspace, is_command=True).stagings
    order = home_orders.Staging(dataset="streets", to=["afm:fs1/x"])
    for more in ({"verify": True}, {"prepare": "96x64"}):
        with pytest.raises(InvalidInput, match=f"{next(iter(more))} goes with the cache"):
            stagings.begin(replace(order, **more))
    with pytest.raises(InvalidInput, match="expected"):
        stagings.begin(replace(order, to=["fs1/x"]))
    job = stagings.begin(replace(order, to=["afm:fs1/cos_fset"]))
    assert job.settings == {"workers": 4, "to": ["afm:fs1/cos_fset"]}
    asked = home_orders.home_order_of(job.request["order"])
    assert asked == home_orders.Staging(dataset="streets@1", to=("afm:fs1/cos_fset",))
    cancel(storage.workspace.records, recorded_job(storage.workspace.records, job.name))
