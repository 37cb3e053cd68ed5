"""Datasets, jobs, sources and tags through the client."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import framesift
from framesift import (
    Dataset,
    FramesiftServerError,
    InvalidQuestion,
    JobFailed,
    JobNotDone,
    NotFound,
)
from tests.api.servers import serving
from tests.disks import disk, small_disk
from tests.pipeline.homes import FRAMES, SAMPLE, copy_home


@pytest.fixture(scope="module")
def client(
    catalogued: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[framesift.Client]:
    """A client of a server of its own, which the tests of this file may change."""
    home = copy_home(catalogued, tmp_path_factory.mktemp("datasets"))
    with serving(home) as (url, _), framesift.connect(url) as connected:
        yield connected


@pytest.fixture(scope="module")
def city(client: framesift.Client) -> Dataset:
    """All frames, divided."""
    return client.datasets.create("city", split="train=0.5,validation=0.5")


@pytest.mark.wide
def test_a_dataset_is_made_and_found(client: framesift.Client, city: Dataset) -> None:
    """By name, by version and in the list; splits add up."""
    assert (city.name, city.version, city.frame_count) == ("city", 1, FRAMES)
    assert sum(city.splits.values()) == FRAMES
    assert client.datasets.get("city@1").id == city.id
    assert city.id in [entry.id for entry in client.datasets]
    train = list(city.frames("train", columns=["scene"], page=5))
    assert len(train) == city.splits["train"]
    assert city._repr_html_().count("<img") == 12
    with pytest.raises(NotFound, match="no dataset named 'nope'"):
        client.datasets.get("nope")
    with pytest.raises(InvalidQuestion, match="expected"):
        client.datasets.create("bad", split="train")


def test_methods_build_sets(client: framesift.Client) -> None:
    """Coverage, matching and stratified samples, as /v1/datasets takes them."""
    covered = client.datasets.create(
        "covered", method={"method": "cover", "demands": [framesift.demand(2, has="bicycle")]}
    )
    assert covered["report"]["demands"][0]["achieved"] == 2
    sampled = client.datasets.create(
        "sampled", method={"method": "sample", "frames": 6, "stratify": ["camera"]}, car=(1, None)
    )
    assert sampled.frame_count == 6
    grown = covered.extend(framesift.demand(3, has="pedestrian"))
    assert (grown.version, grown.name) == (2, "covered")
    assert (
        len([frame for frame in grown.frames(columns=["pedestrian"]) if frame["pedestrian"]]) >= 3
    )
    smaller = grown.reduce(2, seed=1)
    assert (smaller.version, smaller.frame_count) == (3, 2)
    assert smaller["report"]["method"] == "reduce"
    assert client.datasets.rebuild("covered@3").id == smaller.id
    with pytest.raises(InvalidQuestion, match="2 are to be kept"):
        smaller.reduce(2)
    compared = covered.diff(grown)
    assert compared["frames_added"] == grown.frame_count - covered.frame_count > 0
    pieces = [*client.datasets.diff_text("covered@1", grown)]
    assert json.loads("".join(pieces)) == compared
    bounded = "".join(client.datasets.diff_text("covered@1", grown, limit=0))
    assert json.loads(bounded) == {**compared, "added": []}
    with pytest.raises(NotFound, match="no dataset named 'nope'"):
        [*client.datasets.diff_text("nope", grown)]


def test_a_dataset_by_name(client: framesift.Client, city: Dataset, tmp_path: Path) -> None:
    """What a Dataset can do, without asking for it first."""
    assert client.datasets.rebuild("city@1").id == city.id
    assert client.datasets.diff("city@1", city)["frames_added"] == 0
    written = client.datasets.export("city@1", tmp_path / "city.csv", split="train")
    assert written.read_bytes() == b"".join(city.exported(split="train"))
    with pytest.raises(NotFound, match="no dataset named 'nope'"):
        client.datasets.divide("nope", "train=0.5,validation=0.5")


def test_a_dataset_is_divided_anew_and_asked(city: Dataset) -> None:
    """A new version with the same frames; gaps and classes are told."""
    other = city.divide("train=0.75,validation=0.25")
    assert (other.version, other.frame_count) == (2, FRAMES)
    changed = city.diff("city@2")
    assert (changed["frames_added"], changed["frames_removed"]) == (0, 0)
    assert changed["frames_moved"] > 0
    gaps = city.gaps(split="validation", at_least=30)["gaps"]
    assert {gap["kind"] for gap in gaps} >= {"class", "camera"}
    assert {entry["tag"] for entry in city.classes("train")} >= {"car", "sky"}


def test_a_dataset_goes_to_other_programs(city: Dataset, tmp_path: Path) -> None:
    """Files of every format, whole or not there, beside the user's own; Arrow in memory."""
    own = tmp_path / "a.csv.part"
    own.write_text("the user's own")
    rows = city.to_arrow()
    assert rows.num_rows == FRAMES
    assert city.to_arrow("train").num_rows == city.splits["train"]
    assert pq.read_table(city.export(tmp_path / "a.parquet", "parquet")).equals(rows)
    text = city.export(tmp_path / "a.csv").read_text()
    assert len(text.splitlines()) == FRAMES + 1
    assert b"".join(city.exported()) == text.encode()
    listed = city.export(tmp_path / "a.txt", "files", with_labels=True).read_text()
    assert all(line.count("\t") == 1 for line in listed.splitlines())
    folder = city.export(tmp_path / "fiftyone", "fiftyone")
    assert len(json.loads((folder / "samples.json").read_text())["samples"]) == FRAMES
    with pytest.raises(InvalidQuestion, match="unknown split"):
        city.export(tmp_path / "b.csv", split="nope")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("b.")]
    assert own.read_text() == "the user's own"


def test_an_export_is_on_the_disk(city: Dataset, tmp_path: Path) -> None:
    """What was exported is whole after a power cut, a folder for FiftyOne too."""
    with disk(tmp_path / "powered") as powered:
        text = city.export(powered.folder / "a.csv").read_bytes()
        samples = (city.export(powered.folder / "out", "fiftyone") / "samples.json").read_bytes()
        with powered.power_cut() as after:
            assert (after / "a.csv").read_bytes() == text
            assert (after / "out" / "samples.json").read_bytes() == samples


def test_an_export_that_a_full_disk_ends_leaves_the_earlier_one(
    city: Dataset, tmp_path: Path
) -> None:
    """Both files of a folder for FiftyOne, or none."""
    with small_disk(tmp_path / "small", "size=16k") as disk:
        earlier = {
            disk / "out" / name: f"earlier {name}" for name in ("metadata.json", "samples.json")
        }
        (disk / "out").mkdir()
        for path, text in earlier.items():
            path.write_text(text)
        with pytest.raises(OSError, match="No space left"):
            city.export(disk / "out", "fiftyone")
        assert {path: path.read_text() for path in (disk / "out").iterdir()} == earlier


@pytest.mark.wide
def test_a_job_is_waited_for(
    client: framesift.Client, city: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    """Staging: its states come as they change, its logs and metrics are there in the end."""
    job = city.stage(workers=2, prepare="96x64")
    seen: list[str] = []
    assert job.wait(progress=lambda now: seen.append(now.state)) is job
    assert (seen[-1], job.finished, job.metrics["files"]) == ("done", True, 2 * FRAMES)
    assert '"files": 48' in job.logs()
    prepared = job.result()["prepared"]
    assert (prepared["size"], prepared["frames"], prepared["made"]) == ("96x64", FRAMES, FRAMES)
    assert job.logs("command-0") in job.logs()
    assert client.jobs.get(job.name).state == "done"
    assert b"".join(client.jobs.log_chunks(job.name)).decode() == job.logs()
    assert client.jobs.wait(job.name, progress=False)["metrics"] == job.metrics
    assert client.jobs.cancel(job.name).state == "done"  # it had ended
    with pytest.raises(FramesiftServerError, match=f"job {job.name} is done"):
        client.jobs.resume(job.name)
    with pytest.raises(FramesiftServerError, match="workers"):
        client.jobs.resume(job.name, workers=0)
    assert job.name in [entry.name for entry in client.jobs.list(kind="stage", state="done")]
    assert job.wait().name == job.name  # at once
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.wide
def test_a_job_that_fails_is_an_exception(client: framesift.Client, tmp_path: Path) -> None:
    """With the job's name and state; a time that is over is a TimeoutError, too."""
    source = tmp_path / "gone"
    source.mkdir()
    added = client.sources.add("gone", str(source))
    source.rmdir()
    job = added.scan()
    with pytest.raises(TimeoutError, match=f"job {job.name}: .* after 0 s; it goes on") as late:
        job.wait(timeout_s=0)
    assert isinstance(late.value, JobNotDone)
    assert isinstance(late.value, FramesiftServerError)
    assert (late.value.job, late.value.status) == (job.name, None)
    with pytest.raises(JobFailed, match=f"job {job.name} failed") as caught:
        job.wait(progress=False)
    assert (caught.value.job, caught.value.state) == (job.name, "failed")
    with pytest.raises(NotFound, match="no job named 'nope'"):
        client.jobs.get("nope")


@pytest.mark.wide
def test_a_source_is_scanned(client: framesift.Client) -> None:
    """A job whose metrics are the scan's counts; the scan is listed."""
    source = client.sources.get("a2d2")
    job = source.scan(full=True).wait(progress=False)
    assert job.metrics["frames"] == FRAMES
    assert next(source.scans())["scan"] == job.metrics["scan"]
    assert source["uri"] == str(SAMPLE)
    assert "a2d2" in [entry.name for entry in client.sources]
    problems = source.scan(errors=True).wait(progress=False).result()
    assert problems["scan"] == job.metrics["scan"]


def test_a_source_by_its_name(client: framesift.Client, tmp_path: Path) -> None:
    """What hangs on it, a change, and its removal; as with the source at hand."""
    added = client.sources.add("notes", str(tmp_path))
    contents = client.sources.contents("notes")
    assert (contents["files"], contents["datasets"]) == (0, [])
    assert contents == added.contents()
    changed = client.sources.change("notes", exclude=["*.bak"], part_of="a2d2")
    assert (changed["exclude"], changed["part_of"], changed["same"]) == (["*.bak"], "a2d2", None)
    assert added.set(part_of="")["part_of"] == "notes"
    with pytest.raises(InvalidQuestion, match="nothing to change"):
        client.sources.change("notes")
    sources = client.info()["sources"]
    assert client.sources.remove("notes") == {"name": "notes", "files_removed": 0}
    assert client.info()["sources"] == sources - 1


@pytest.mark.wide
def test_tags_are_added_and_given_values(client: framesift.Client, tmp_path: Path) -> None:
    """A Restricted tag from CSV; what does not fit is told."""
    client.tags.add("weather", kind="Restricted", values=["sun", "rain"], family="weather")
    frame = client.select(car=(1, None))[0]
    table = tmp_path / "weather.csv"
    table.write_text(f"fkey,weather\n{frame.fkey},rain\nnowhere,sun\n")
    counts = client.tags.import_values(table, "weather", key="fkey")
    assert (counts["imported"], counts["unmatched"]) == (1, 1)
    assert client.tags.get("weather")["values"] == ["sun", "rain"]
    assert [one.fkey for one in client.select(where="weather = 'rain'")] == [frame.fkey]
    with pytest.raises(ValueError, match=r"expected a file \.csv or \.parquet"):
        client.tags.import_values(tmp_path / "weather.txt", "weather")
    assert list(client.models) == []
