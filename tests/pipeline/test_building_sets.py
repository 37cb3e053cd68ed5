"""Sets built from a catalog, divided, extended, kept apart: through what route and command use."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from api.schemas.new_datasets import NewDataset, NewExtension, NewSplit
from api.services.datasets.new_dataset import divide_dataset, grow_dataset, make_dataset
from api.workspace import Workspace
from catalog.errors import InvalidInput, UnknownName
from catalog.records.tables import Dataset
from pipeline.datasets.derive import _aligned
from pipeline.manifest import Manifest
from query.frames.candidates import Candidates
from query.frames.sampling import hashes_of
from query.question.question import Question
from query.sets.methods import Cover, Demand, Match, Method, Sample, Uncertain
from tests.api.servers import framesift
from tests.pipeline.homes import FRAMES
from tests.pipeline.synthetic import SCENES, synthetic

SPLIT = "train=0.5,validation=0.3,test=0.2"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A home with 15,000 drawn rows of 30 scenes in the catalog; datasets may be added."""
    return synthetic(tmp_path_factory.mktemp("many"))


def build(workspace: Workspace, name: str, method: Method | None, **more: object) -> Dataset:
    """A dataset of all frames by a method."""
    request = {"name": name, "question": Question(), "method": method} | more
    return make_dataset(workspace, NewDataset.model_validate(request))


def frames(dataset: Dataset, column: str = "fkey") -> list[str]:
    """A column of its manifest."""
    values: list[str] = Manifest.read(Path(dataset.manifest)).frames[column].to_pylist()
    return values


def test_fkey_hash_is_the_catalogs(many: Workspace) -> None:
    """What Python makes of an fkey is what the engine does."""
    with many.catalog.reading() as cursor:
        rows = cursor.execute(
            "SELECT fkey, md5_number_lower(fkey) FROM lake.main.files LIMIT 50"
        ).fetchall()
    assert hashes_of(row[0] for row in rows).tolist() == [row[1] for row in rows]


def test_a_stratified_sample(many: Workspace) -> None:
    """Every camera has its part; the report says what each stratum gave."""
    dataset = build(many, "sampled", Sample(frames=60, stratify=("camera",)))
    assert dataset.frames == 60
    assert set(Counter(frames(dataset, "camera")).values()) == {10}
    strata = dataset.report["largest_strata"]
    assert [row["frames"] for row in strata] == [10] * 6
    assert [row["available"] for row in strata] == [2_500] * 6
    again = build(many, "sampled", Sample(frames=60, stratify=("camera",)))
    assert (again.version, again.content_id) == (1, dataset.content_id)
    other = build(many, "sampled", Sample(frames=60, stratify=("camera",)), seed=1)
    assert (other.version, other.seed) == (2, "1")
    assert set(frames(other)) != set(frames(dataset))


def test_allocations(many: Workspace) -> None:
    """Equally many of each stratum, and given shares."""
    bins = ("car:1,1000",)
    equal = build(many, "equal", Sample(frames=90, stratify=bins, allocation="equal"))
    assert [row["frames"] for row in equal.report["largest_strata"]] == [30] * 3
    shares = Sample(
        frames=50, stratify=("camera",), allocation={"front_center": 0.8, "rear_center": 0.2}
    )
    reference = build(many, "given", shares)
    assert Counter(frames(reference, "camera")) == {"front_center": 40, "rear_center": 10}


@pytest.mark.wide
def test_matched_to_shares_and_to_a_dataset(many: Workspace) -> None:
    """Achieved is what the manifest says; like a dataset is like its frames."""
    targets = {
        "camera": {"front_center": 0.6, "*": 0.4},
        "bicycle": {"present": 0.9, "absent": 0.1},
    }
    dataset = build(many, "matched", Match(frames=200, targets=targets, tolerance=0.01))
    report = dataset.report
    assert report["tolerance_met"] is True
    assert report["unmet"] == []
    assert Counter(frames(dataset, "camera"))["front_center"] in (118, 119, 120, 121, 122)
    by_name = {one["marginal"]: one for one in report["marginals"]}
    achieved = {row["value"]: row["frames"] for row in by_name["bicycle"]["values"]}
    assert achieved["present"] == dataset.class_frames["bicycle"]
    like = build(
        many, "alike", Match(frames=100, like="matched@1", by=("camera", "bicycle"), tolerance=0.01)
    )
    assert like.report["tolerance_met"] is True
    assert abs(Counter(frames(like, "camera"))["front_center"] - 60) <= 2
    assert like.question["method"]["like"] == "matched@1"
    everything = build(many, "alike-in-all", Match(frames=100, like="matched", tolerance=0.05))
    assert len(everything.report["marginals"]) > 30


def test_what_cannot_be_matched_is_told(many: Workspace) -> None:
    """A camera that does not exist, wanted in half of the frames."""
    targets = {"camera": {"nose": 0.5, "front_center": 0.5}}
    dataset = build(many, "nose", Match(frames=100, targets=targets))
    assert dataset.report["tolerance_met"] is False
    (nose,) = [one for one in dataset.report["unmet"] if one["value"] == "nose"]
    assert (nose["wanted"], nose["achieved"], nose["available"], nose["short_by"]) == (50, 0, 0, 50)


def test_cover(many: Workspace) -> None:
    """Every demand is met in the frames themselves, per camera too; what cannot be met is told."""
    demands = (
        Demand.parse("bicycle=40"),
        Demand.parse("camera/car:1000=5"),
        Demand(question=Question(where="scene = 'none'"), frames=3, name="nowhere"),
    )
    dataset = build(many, "covering", Cover(demands=demands))
    assert dataset.class_frames["bicycle"] >= 40
    manifest = Manifest.read(Path(dataset.manifest))
    car = list(manifest.header.classes).index("Car")
    pixels = np.array(manifest.frames["class_pixels"].to_pylist())[:, car]
    cameras = np.array(manifest.frames["camera"].to_pylist())
    assert all((pixels[cameras == camera] >= 1000).sum() >= 5 for camera in set(cameras.tolist()))
    assert len(set(cameras.tolist())) == 6
    assert [one["demand"] for one in dataset.report["unmet"]] == ["nowhere"]
    assert dataset.report["lower_bound"] <= dataset.frames


def test_uncertain(many: Workspace) -> None:
    """The highest scores are preferred, no scene gives more than its limit."""
    dataset = build(many, "unsure", Uncertain(tag="sky", frames=40, per_scene=3, pool=2))
    assert dataset.frames == 40
    assert max(Counter(frames(dataset, "scene")).values()) <= 3
    assert dataset.report["scores"]["mean"] > dataset.report["scores_of_all"]["mean"]
    low = build(many, "sure", Uncertain(tag="sky", frames=40, lowest=True))
    assert low.report["scores"]["mean"] < dataset.report["scores_of_all"]["mean"]
    with pytest.raises(InvalidInput, match="camera: it is no number"):
        build(many, "x", Uncertain(tag="camera", frames=1))


@pytest.mark.wide
def test_splits_are_kept_apart_and_stratified(many: Workspace) -> None:
    """No scene on two sides, in any way of splitting, until the guard is switched off."""
    for by in ("scene", "frame"):
        dataset = build(
            many, f"by-{by}", None, split=SPLIT, split_by=by, stratify_splits=("camera",)
        )
        sides: dict[str, set[str]] = {}
        for scene, split in zip(frames(dataset, "scene"), frames(dataset, "split"), strict=True):
            sides.setdefault(scene, set()).add(split)
        assert len(sides) == SCENES
        assert all(len(splits) == 1 for splits in sides.values())
        leakage = dataset.report["leakage"]
        assert (leakage["guard"], leakage["shared_scenes"]) == (True, 0)
        assert leakage["smallest_gap_s"] >= leakage["min_gap_s"] == 10
        assert {row["stratum"] for row in dataset.report["split_strata"]} == set(
            frames(dataset, "camera")
        )
    leaky = build(many, "leaky", None, split=SPLIT, split_by="frame", allow_leakage=True)
    assert list(leaky.splits.values()) == [7_500, 4_500, 3_000]
    assert (leaky.report["leakage"]["guard"], leaky.report["leakage"]["shared_scenes"]) == (
        False,
        SCENES,
    )


def test_a_longer_gap_holds_scenes_together(many: Workspace) -> None:
    """Scenes begin a minute apart: with a gap of two, all are one group."""
    with pytest.raises(InvalidInput, match="1 groups cannot be divided among 3 splits"):
        build(many, "near", None, split=SPLIT, min_gap_s=120.0)


@pytest.mark.wide
def test_disjoint_from_a_dataset(many: Workspace) -> None:
    """No scene of the other one, with every way to choose; the report says what was left out."""
    first = build(many, "first", None, question=Question(where="scene <= '20180807_1459'"))
    scenes = set(frames(first, "scene"))
    assert 0 < len(scenes) < SCENES
    for number, (method, question) in enumerate(
        (
            (Sample(frames=50), Question()),
            (None, Question()),
            (None, Question(sample=50)),
            (None, Question(order=("car desc",), limit=50)),
            (Cover(demands=(Demand.parse("car=9"),)), Question()),
        )
    ):
        dataset = build(
            many, f"second-{number}", method, question=question, disjoint_from=("first",)
        )
        assert not scenes & set(frames(dataset, "scene"))
        assert dataset.report["disjoint_from"] == ["first@1"]
        assert dataset.report["left_out_as_too_near"] >= len(first.splits)
    rest = build(many, "rest", None, disjoint_from=("first",), min_gap_s=90.0)
    assert len(set(frames(rest, "scene"))) == SCENES - len(scenes) - 1


@pytest.mark.wide
def test_what_took_all_frames_is_told(many: Workspace) -> None:
    """The dataset from which they are to be apart, and not the ranges; a clash stays a clash."""
    build(many, "all-of-it", None)
    for method, question in (
        (Sample(frames=5), Question()),
        (None, Question(where="car >= 0")),
        (None, Question(limit=3)),
    ):
        with pytest.raises(InvalidInput, match=r"15,000 frames answer .* all-of-it@1.*--disjoint"):
            build(many, "rest", method, question=question, disjoint_from=("all-of-it",))
    nothing = Question(where="car < 0")
    for others in ((), ("all-of-it",)):
        with pytest.raises(InvalidInput, match="no frames; widen its ranges"):
            build(many, "rest", None, question=nothing, disjoint_from=others)


def test_a_dataset_divided_anew(many: Workspace) -> None:
    """The same frames in other splits, as the next version, with its parent."""
    first = build(many, "whole", Sample(frames=600))
    request = NewSplit(split="train=0.8,validation=0.2", stratify_splits=("camera", "car:1,1000"))
    second = divide_dataset(many, "whole", request)
    assert (second.version, second.frames) == (2, first.frames)
    assert frames(second) == frames(first)
    assert second.parents == [{"name": "whole@1", "id": first.content_id}]
    assert Manifest.read(Path(second.manifest)).header.parents == tuple(second.parents)
    assert second.class_pixels == first.class_pixels
    assert divide_dataset(many, "whole@1", request).version == 2
    by_tag = divide_dataset(
        many, "whole@1", NewSplit(split="a=0.5,b=0.5", stratify_splits=("front",))
    )
    assert {row["stratum"] for row in by_tag.report["split_strata"]} == {"0", "1"}
    with pytest.raises(UnknownName, match="unknown column 'weather'"):
        divide_dataset(many, "whole", NewSplit(split="a=0.5,b=0.5", stratify_splits=("weather",)))


@pytest.mark.wide
def test_extended_where_it_lacks_frames(many: Workspace) -> None:
    """The gap is closed in the split that lacks frames, with no scene of the other one."""
    question = Question(where="bicycle = 0 and scene <= '20180807_1505'")
    first = build(many, "gappy", None, question=question, split="train=0.7,validation=0.3")
    gap = NewExtension(demands=(Demand.parse("bicycle=50"),), split="validation")
    with pytest.raises(InvalidInput, match="--grow which of them"):
        grow_dataset(many, "gappy", gap.model_copy(update={"split": None}))
    second = grow_dataset(many, "gappy", gap)
    assert (second.version, second.frames) == (2, first.frames + 50)
    assert second.splits == first.splits | {"validation": first.splits["validation"] + 50}
    assert second.parents == [{"name": "gappy@1", "id": first.content_id}]
    assert frames(second)[: first.frames] == frames(first)
    assert second.class_frames["bicycle"] == 50
    assert second.report["leakage"]["shared_scenes"] == 0
    (demand,) = second.report["demands"]
    assert (demand["wanted"], demand["had"], demand["added"]) == (50, 0, 50)
    assert grow_dataset(many, "gappy@1", gap).version == 2
    with pytest.raises(InvalidInput, match="nothing is missing: bicycle 50 of 50"):
        grow_dataset(many, "gappy", gap)
    more = grow_dataset(
        many, "gappy", NewExtension(demands=(Demand.parse("bicycle=9999"),), split="validation")
    )
    assert more.version == 3
    (unmet,) = more.report["unmet"]
    assert unmet["short_by"] == 9999 - 50 - unmet["added"] > 0
    with pytest.raises(UnknownName, match="unknown split 'test'"):
        grow_dataset(many, "gappy", gap.model_copy(update={"split": "test"}))


def test_no_copy_of_a_frame_is_added_whichever_split_has_it(workspace: Workspace) -> None:
    """Of the other split's, of its own, and of one another; what has no copy is added."""
    every = build(workspace, "every", None)
    tag = next(tag for tag, count in every.class_frames.items() if count == FRAMES)
    loose = {"split": "train=0.5,validation=0.5", "split_by": "frame", "allow_leakage": True}
    few = build(workspace, "few", None, question=Question(limit=6), **loose)
    rows = Manifest.read(Path(few.manifest)).frames.to_pylist()
    of = {name: [row["fkey"] for row in rows if row["split"] == name] for name in few.splits}
    free = [fkey for fkey in frames(every) if fkey not in frames(few)]
    marks = {"a": (of["validation"][0], free[0]), "ab": (of["train"][0], free[1]), "b": free[2:4]}
    with workspace.whole_catalog.writing("marks") as connection:
        for mark, same in marks.items():
            connection.execute(
                "UPDATE lake.main.files SET duplicate = ? WHERE list_contains(?, fkey)",
                [mark, [*same]],
            )
    demands = (Demand.parse(f"{tag}=9999"),)
    grown = grow_dataset(
        workspace, "few", NewExtension(demands=demands, split="train", allow_leakage=True)
    )
    added = [fkey for fkey in frames(grown) if fkey not in frames(few)]
    assert len(added) == len(free) - 3
    assert not {*free[:2]} & {*added}
    assert len({*free[2:4]} & {*added}) == 1
    assert {*free[4:]} < {*added}


def test_columns_are_those_of_their_frames() -> None:
    """In the order of the hashes; a frame that the catalog has no more has nulls."""
    rows = pa.table({"fkey_hash": pa.array([5, 1, 9], pa.uint64()), "speed": [50, 10, 90]})
    there = Candidates(rows)
    hashes = np.array([9, 7, 1, 5, 1, 10, 0], np.uint64)
    aligned = _aligned(there, hashes)["speed"].to_pylist()
    assert aligned == [90, None, 10, 50, 10, None, None]
    empty = Candidates(rows.slice(0, 0))
    assert _aligned(empty, hashes)["speed"].to_pylist() == [None] * 7


@pytest.mark.wide
def test_json_keys_may_stand_in_any_order(many: Workspace) -> None:
    """The same request with its keys the other way round is the same dataset."""
    shares = {"front_center": 0.5, "rear_center": 0.25, "*": 0.25}
    ids = set()
    for targets in (shares, dict(reversed(list(shares.items())))):
        method = {"frames": 40, "targets": {"camera": targets}, "method": "match"}
        for order in (method, dict(reversed(list(method.items())))):
            ids.add(build(many, "keys", order).content_id)  # type: ignore[arg-type]
    assert len(ids) == 1


def test_a_method_says_how_many(workspace: Workspace) -> None:
    """A limit or a sample beside a method is refused; on real frames, too, methods work."""
    for question in (Question(limit=3), Question(sample=3)):
        with pytest.raises(InvalidInput, match="leave out the question's limit and sample"):
            build(workspace, "x", Cover(demands=(Demand.parse("car=1"),)), question=question)
    dataset = build(workspace, "x", Cover(demands=(Demand.parse("car=3"),)))
    assert dataset.frames == 3 < FRAMES


@pytest.mark.wide
def test_drives_stay_on_one_side(workspace: Workspace, tmp_path: Path) -> None:
    """A tag `drive` joins scenes; frames without one are held by their scene alone."""
    everything = build(workspace, "everything", None)
    scenes = sorted(set(frames(everything, "scene")))
    drive_of = {scene: f"drive-{number // 3}" for number, scene in enumerate(scenes[:-1])}
    table = tmp_path / "drives.csv"
    rows = zip(frames(everything, "image"), frames(everything, "scene"), strict=True)
    table.write_text(
        "filename,drive\n"
        + "".join(
            f"{Path(image).name},{drive_of[scene]}\n" for image, scene in rows if scene in drive_of
        )
    )
    run = framesift(workspace.home, "tags", "import", str(table), "--family", "recording")
    assert run.returncode == 0, run.stderr
    dataset = build(workspace, "driven", None, split="train=0.6,validation=0.4")
    assert dataset.report["leakage"]["shared_drives"] == 0
    assert dataset.report["leakage"]["groups"] == 4
    sides: dict[str, set[str]] = {}
    for scene, split in zip(frames(dataset, "scene"), frames(dataset, "split"), strict=True):
        sides.setdefault(drive_of.get(scene, scene), set()).add(split)
    assert all(len(splits) == 1 for splits in sides.values())
    again = divide_dataset(workspace, "driven", NewSplit(split="a=0.5,b=0.5", split_by="drive"))
    assert again.report["leakage"]["shared_drives"] == 0
    first = build(workspace, "first", None, question=Question(scenes=(scenes[0],)))
    rest = build(workspace, "rest", None, disjoint_from=("first",))
    assert set(frames(rest, "scene")) == set(scenes[3:])
    assert first.frames == 3
