"""A model's next training data: weak classes and cameras, uncertainty, and never what is held."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from api.schemas.new_datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset
from api.services.datasets.rebuild_dataset import rebuild_dataset
from api.services.jobs.improve import known_of
from api.services.jobs.validated_with import validated_with
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound, NothingToAdd, UnknownName
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.records.jobs import recorded_job
from catalog.records.tables import Dataset, Job
from catalog.tags.model_scores import write_scores
from catalog.values import now
from pipeline.datasets.frame_worth import Worth, worth_of
from pipeline.datasets.improve import Improvement, improve_dataset, improved_content
from pipeline.datasets.row_counts import class_matrix
from pipeline.datasets.stores import Stores
from pipeline.jobs.request import JobPaths, write_json
from pipeline.manifest import Manifest
from query.frames.sampling import hashes_of
from query.question.question import Question
from query.sets.coverage import cover, packed
from tests.pipeline.synthetic import synthetic
from tests.query.catalogs import class_names


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """15,000 drawn rows of 30 scenes; a model trained on some without bicycles, not validated."""
    workspace = synthetic(tmp_path_factory.mktemp("many"))
    question = Question(where="bicycle = 0 and scene <= '20180807_1505'", sample=300)
    request = NewDataset(name="few", question=question, split="train=0.7,validation=0.3")
    few = make_dataset(workspace, request)
    record(workspace, "first", "train", few, "train")
    return workspace


def record(
    workspace: Workspace,
    name: str,
    kind: str,
    dataset: Dataset,
    split: str | None,
    *,
    state: str = "done",
    settings: Mapping[str, Any] | None = None,
    **of_model: Path,
) -> JobPaths:
    """A job that has ended, of the model "first" unless its paths say another."""
    paths = JobPaths(workspace.jobs / name)
    paths.report.mkdir(parents=True)
    of_model = {"model_dir": workspace.jobs / "first" / "model"} | of_model
    with workspace.records.session() as session:
        session.add(
            Job(
                name=name, kind=kind, backend="local", state=state, handle="1:1",
                request={"stages": [], "settings": {"split": split, **(settings or {})}},
                started=now(), finished=now(), dataset_id=dataset.id, metrics={},
                paths={
                    "folder": str(paths.folder), "logs": str(paths.logs),
                    **{key: str(path) for key, path in of_model.items()},
                },
            )
        )  # fmt: skip
    return paths


def test_whatever_a_model_was_validated_with_is_held_apart(workspace: Workspace) -> None:
    """Its checkpoints', what it was only compared on, its parents', failed ones; no other model's.

    A validation that names no split holds the usual one.
    """
    split = "train=0.5,validation=0.25,a=0.25"
    request = NewDataset(name="set", question=Question(), split=split)
    sets = [make_dataset(workspace, request.model_copy(update={"name": f"set-{n}"})) for n in "12"]
    of = {name: workspace.jobs / name / "model" for name in ("first", "parent", "other")}
    job = partial(record, workspace)
    job("parent", "train", sets[0], "train", model_dir=of["parent"])
    job("other", "train", sets[0], "train", model_dir=of["other"])
    job("first", "train", sets[0], "train", continued_from=of["parent"])
    training = recorded_job(workspace.records, "first")

    def held() -> set[tuple[str, str]]:
        return {(one.dataset.name, one.split) for one in validated_with(workspace, training)}

    job("v-0", "validate", sets[0], "a", settings={"model": "other"}, model_dir=of["other"])
    assert held() == set()
    ours = {"model": "first@2"}
    exported = workspace.jobs / "v-1" / "checkpoints" / "first@2"
    job("v-1", "validate", sets[0], None, settings=ours, model_dir=exported, state="failed")
    assert held() == {("set-1", "validation")}
    both = {"model": "other", "compare": "first@2"}
    job("v-2", "validate", sets[1], "validation", settings=both, model_dir=of["other"])
    job(
        "v-3", "validate", sets[1], "train",
        model_dir=of["other"], compared_model_dir=of["first"], state="running",
    )  # fmt: skip
    job("v-4", "validate", sets[1], "a", settings={"model": "parent"}, model_dir=of["parent"])
    assert held() == {
        ("set-1", "validation"),
        *(("set-2", n) for n in ("a", "train", "validation")),
    }
    of["eldest"] = workspace.jobs / "eldest" / "model"
    third = make_dataset(workspace, request.model_copy(update={"name": "set-3"}))
    job("eldest", "train", third, "train", settings={"evaluate_every": 1}, model_dir=of["eldest"])
    before = held()
    with workspace.records.session() as session:
        parent = session.get_one(Job, recorded_job(workspace.records, "parent").id)
        parent.paths = {**parent.paths, "continued_from": str(of["eldest"])}
    assert held() == {*before, ("set-3", "validation")}
    assert ("set-3", "validation") not in before


def test_label_classes_are_as_weak_as_what_they_are_merged_into(workspace: Workspace) -> None:
    """Each label class of a merged class has its weakness; those that the map ignores have none."""
    classes = {"Vehicle": ["Car", "Utility vehicle"], "Sky": ["Sky"]}
    report = {
        "class_map": {"name": "own", "classes": classes, "ignored": ["Ego car"]},
        "per_class": [
            {"class": "Vehicle", "tag": "vehicle", "label_tags": ["auto", "utility_vehicle"],
             "iou": 0.25, "truth_pixels": 9},
            {"class": "Sky", "tag": "sky", "label_tags": ["sky"], "iou": None, "truth_pixels": 0},
        ],
    }  # fmt: skip
    known = known_of(workspace, "first", report)
    assert known.weak_classes == {"auto": 0.75, "utility_vehicle": 0.75, "sky": 1.0}
    of_another = {"per_class": [{"class": "Sky", "tag": "sky", "iou": 0.5, "truth_pixels": 9}]}
    with pytest.raises(InvalidInput, match="validate it again: framesift validate first DATASET"):
        known_of(workspace, "first", of_another)


def test_frames_are_worth_as_much_as_their_slices_are_weak() -> None:
    """The mean over tags; ranges of a number by their ends; as usual in no slice."""
    weak = {
        "weather": {"rain": 1.0, "dry": 0.2, "unknown": 0.4},
        "speed": {"0 to 9.5": 0.5, "9.5 to 20": 0.1},
        "gone": {"x": 1.0},
    }
    pool = pa.table(
        {
            "weather": pa.array(["rain", None, "snow"]).dictionary_encode(),
            "speed": pa.array([3.25, 20.0, None]),
        }
    )
    worth = worth_of(pool, np.zeros((1, 3)), ["car"], Worth({}, weak, None))
    usual = (1.0 + 0.2 + 0.4) / 3
    assert worth == pytest.approx([(1.0 + 0.5) / 2, (0.4 + 0.1) / 2, (usual + 0.3) / 2])


def column(dataset: dict[str, Any], name: str, split: str) -> list[str]:
    """Of the frames of a split of a dataset."""
    rows = Manifest.read(Path(dataset["manifest"])).split(split).frames[name]
    values: list[str] = rows.to_pylist()
    return values


@dataclass(frozen=True)
class Validated:
    """A home, a set on which its model "first" was validated, and its doubt about each frame."""

    workspace: Workspace
    held: Dataset
    uncertainty: dict[str, float]


@pytest.fixture(scope="module")
def validated(many: Workspace) -> Validated:
    """The model was validated: it finds no bicycle, and little by one camera."""
    with pytest.raises(InvalidInput, match=r"no finished validation.*framesift validate first"):
        Session(many, is_command=True).models.improve("first")
    held = make_dataset(
        many,
        NewDataset(name="held", question=Question(where="scene >= '20180807_1515'", sample=50)),
    )
    report = record(many, "v-1", "validate", held, "all").report
    per_class = [
        {
            "tag": tag,
            "label_tags": [tag],
            "iou": None if tag == "bicycle" else 0.9,
            "truth_pixels": tag != "bicycle",
        }
        for tag in ("bicycle", "car", "sky", "truck")
    ]
    cameras = [
        {"camera": camera, "miou": 0.2 if camera == "rear_center" else 0.9}
        for camera in ("front_center", "rear_center")
    ]
    scenes = [{"scene": "20180807_1515", "value": "20180807_1515", "miou": 0.1}]
    slices = {"camera": cameras, "scene": scenes, "gone": [{"value": "x", "miou": 0.1}]}
    write_json(report / "report.json", {"per_class": per_class, "slices": slices})
    with many.catalog.reading() as snapshot:
        rows = snapshot.execute("SELECT fkey FROM lake.main.tags_frame ORDER BY fkey").fetchall()
    fkeys = [row[0] for row in rows]
    unsure = np.random.default_rng(1).random(len(fkeys))
    write_scores(
        many.whole_catalog, "first", "aa", pa.table({"fkey": fkeys, "uncertainty": unsure}), None
    )
    return Validated(many, held, dict(zip(fkeys, unsure.tolist(), strict=True)))


@pytest.mark.wide
def test_what_a_model_lacks_is_added(validated: Validated) -> None:
    """Frames of the weak class and the weak camera, unsure ones first; nothing near what is held.

    The new version is made again from its record alone.
    """
    many = validated.workspace
    models = Session(many, is_command=True).models
    body = models.improve("first", frames=60, per_scene=10).model_dump()
    grown = body["dataset"]
    assert (body["validation"], grown["name"], grown["version"]) == ("v-1", "few", 2)
    first = recorded_dataset(many.records, "few@1")
    before = Manifest.read(Path(first.manifest)).frames["fkey"].to_pylist()
    added = set(column(grown, "fkey", "train")) - set(before)
    assert len(added) == 60 == grown["report"]["added"]
    frames = Manifest.read(Path(grown["manifest"])).frames.to_pylist()
    new = [row for row in frames if row["fkey"] in added]
    away = {*column(grown, "scene", "validation")}
    away |= set(Manifest.read(Path(validated.held.manifest)).frames["scene"].to_pylist())
    assert not away & {row["scene"] for row in new}
    scenes = [row["scene"] for row in new]
    assert max(scenes.count(scene) for scene in scenes) <= 10
    expected = {row["class"]: row for row in grown["report"]["expects"]}
    assert expected["bicycle"]["frames"] == 0
    assert expected["bicycle"]["added"] == 60
    assert next(iter(expected)) == "bicycle"
    # Of all frames a sixth are this camera's, and half are as uncertain.
    assert sum(row["camera"] == "rear_center" for row in new) > 20
    assert np.mean([validated.uncertainty[fkey] for fkey in added]) > 0.6
    assert {reason["fkey"] for reason in body["reasons"]} == added
    first_of_all = body["reasons"][0]
    pixels, unsure = first_of_all["pixels"]["bicycle"], first_of_all["uncertainty"]
    assert first_of_all["reason"].startswith(f"labelled {pixels:,} pixels of bicycle")
    assert first_of_all["reason"].endswith(f", {100 * unsure:.0f} % uncertain")
    again = models.improve("first", frames=60, per_scene=10).dataset
    assert again is not None
    assert again.version == 2
    shutil.rmtree(grown["manifest"])
    assert rebuild_dataset(many, "few@2").content_id == grown["id"]


def test_frames_are_added_for_the_classes_that_are_given(validated: Validated) -> None:
    """`classes` takes a name or a tag; the report expects those alone; unknown ones are refused."""
    models = Session(validated.workspace, is_command=True).models
    body = models.improve("first", frames=5, classes=["car"])
    assert body.dataset is not None
    assert body.dataset.report is not None
    assert [row["class"] for row in body.dataset.report["expects"]] == ["car"]
    assert all([*reason.pixels] == ["car"] for reason in body.reasons)
    assert len(body.reasons) == 5
    with pytest.raises(UnknownName, match="unknown class 'cart': did you mean car"):
        models.improve("first", frames=5, classes=["cart"])


def test_a_proposal_saves_nothing_and_is_saved_without_what_is_dropped(
    validated: Validated,
) -> None:
    """A dry run names the frames; saved at its snapshot, all come but those that are dropped.

    No other frame takes their place; what was not chosen cannot be dropped, nor all; the version is
    made again from its record.
    """
    many = validated.workspace
    models = Session(many, is_command=True).models
    versions = len(recorded_datasets(many.records, "few"))
    proposed = models.improve("first", frames=6, dry_run=True)
    assert proposed.dataset is None
    assert len(recorded_datasets(many.records, "few")) == versions
    assert (proposed.trained_on, len(proposed.to_add)) == ("few@1", 6)
    assert proposed.unsaved is not None
    assert (proposed.unsaved["added"], proposed.snapshot) == (6, many.catalog.snapshot())
    update = "UPDATE lake.main.tags_frame SET labelled = ? WHERE list_contains(?, fkey)"
    with many.whole_catalog.writing("six labels are gone") as connection:
        connection.execute(update, [0, proposed.to_add])
    assert not {*proposed.to_add} & {*models.improve("first", frames=6, dry_run=True).to_add}
    gone = [proposed.to_add[1], proposed.to_add[4]]
    at = proposed.snapshot
    with pytest.raises(InvalidInput, match=r"drop nobody: it is not among the 6 frames"):
        models.improve("first", frames=6, at=at, drop=["nobody"])
    with pytest.raises(NothingToAdd, match="all 6 frames that are chosen are dropped"):
        models.improve("first", frames=6, at=at, drop=proposed.to_add)
    with pytest.raises(InvalidInput, match="not among the 0 frames to label"):
        models.improve("first", frames=0, label=3, at=at, drop=gone)
    saved = models.improve("first", frames=6, at=at, drop=gone)
    assert saved.to_add == [fkey for fkey in proposed.to_add if fkey not in gone]
    assert (saved.dataset is not None, saved.unsaved) == (True, None)
    assert saved.dataset is not None
    report = saved.dataset.report
    assert report is not None
    assert (report["added"], report["dropped"], saved.dataset.version) == (4, 2, versions + 1)
    first = recorded_dataset(many.records, "few@1")
    before = Manifest.read(Path(first.manifest)).frames["fkey"].to_pylist()
    grown = saved.dataset.model_dump()
    assert set(column(grown, "fkey", "train")) - set(before) == set(saved.to_add)
    shutil.rmtree(grown["manifest"])
    assert rebuild_dataset(many, f"few@{versions + 1}").content_id == grown["id"]
    with many.whole_catalog.writing("six labels are back") as connection:
        connection.execute(update, [1, proposed.to_add])


def test_a_version_of_0_2_0_is_made_again_by_its_rule(validated: Validated) -> None:
    """Its record names neither rule nor classes; its frames are unlike each other, and others."""
    many = validated.workspace
    stores = Stores(many.catalog, many.records)
    few = recorded_dataset(many.records, "few@1")
    weak = {"bicycle": 1.0, "car": 0.1}
    settings: dict[str, Any] = {
        "frames": 9, "weak_classes": weak, "weak_slices": {}, "uncertainty": "first_uncertainty",
        "split": "train", "per_scene": 3, "min_gap_s": 10.0, "seed": 0,
    }  # fmt: skip
    earlier = Improvement.of_record(settings)
    grown, _ = improve_dataset(stores, few, earlier, [])
    last = grown.question["extended"][-1]
    assert {name: last[name] for name in settings} == settings
    assert not {"rule", "classes", "dropped"} & {*last}
    now_, _ = improve_dataset(stores, few, Improvement(**settings), [])
    assert now_.question["extended"][-1]["rule"] == "cover"
    both = [
        {*Manifest.read(Path(one.manifest)).frames["fkey"].to_pylist()} for one in (grown, now_)
    ]
    assert both[0] != both[1]
    for one in (grown, now_):
        shutil.rmtree(one.manifest)
        again = rebuild_dataset(many, f"{one.name}@{one.version}")
        assert again.content_id == one.content_id


@pytest.mark.wide
def test_unlabelled_frames_are_listed_to_be_labelled(validated: Validated) -> None:
    """The most uncertain of those without a label, none of a scene that is held."""
    many = validated.workspace
    with many.whole_catalog.writing("no labels") as connection:
        connection.execute(
            "UPDATE lake.main.tags_frame SET labelled = 0 WHERE scene < '20180807_1509' "
            "AND scene > '20180807_1506'"
        )
    body = Session(many, is_command=True).models.improve("first", frames=1, label=40)
    assert len(set(body.to_label)) == 40
    with many.catalog.reading() as snapshot:
        rows = snapshot.execute(
            "SELECT avg(first_uncertainty), max(labelled) FROM lake.main.tags_frame "
            "JOIN lake.main.tags_scores_first USING (fkey) WHERE list_contains(?, fkey)",
            [body.to_label],
        ).fetchall()
    assert rows[0][0] > 0.6
    assert rows[0][1] == 0


def test_unlabelled_frames_are_unlike_each_other(validated: Validated) -> None:
    """By the classes that the model found in them: of equally unsure frames one of each kind.

    Each says what the prediction lets expect, and the weakest class comes first.

    What another model found, whose name begins like its own, says nothing.
    """
    many = validated.workspace
    with many.whole_catalog.writing("fewer labels") as connection:
        connection.execute(
            "UPDATE lake.main.tags_frame SET labelled = 0 WHERE scene LIKE '20180807_1508%'"
        )
        rows = connection.execute(
            "SELECT fkey FROM lake.main.tags_frame WHERE labelled = 0 AND camera = 'rear_center' "
            "AND scene LIKE '20180807_1508%' ORDER BY fkey LIMIT 20"
        ).fetchall()
    kinds = dict.fromkeys([fkey for (fkey,) in rows], "sky")
    # Frames lie 0.7 s apart: the three are not near each other, and the ends repeat least.
    kinds |= {[*kinds][n]: tag for n, tag in ((0, "car"), (9, "bicycle"), (19, "truck"))}
    found = {
        "fkey": [*kinds], "truth": pa.nulls(20, pa.string()),
        "predicted": [*kinds.values()], "pixels": pa.array([900] * 20, pa.int32()),
    }  # fmt: skip
    scores = pa.table({"fkey": [*kinds], "uncertainty": [1.0] * 20})
    write_scores(many.whole_catalog, "first", "aa", scores, pa.table(found))
    others = ["car" if n == 11 else "bicycle" if n == 12 else "truck" for n in range(20)]
    louder = {"predicted": others, "pixels": pa.array([90_000] * 20, pa.int32())}
    write_scores(many.whole_catalog, "first2", "bb", scores, pa.table(found | louder))
    body = Session(many, is_command=True).models.improve("first", frames=0, label=4)
    assert sorted(kinds[fkey] for fkey in body.to_label) == ["bicycle", "car", "sky", "truck"]
    first = body.reasons[0]
    assert (first.fkey, first.pixels) == (body.to_label[0], {"bicycle": 900})
    assert first.reason == "predicted 900 pixels of bicycle, 100 % uncertain"
    assert [one.fkey for one in body.reasons] == body.to_label
    alone = Session(many, is_command=True).models.improve(
        "first", frames=0, label=4, classes=["truck"]
    )
    assert kinds[alone.to_label[0]] == "truck"
    assert [one.pixels for one in alone.reasons] == [{"truck": 900}]


def test_the_same_frame_is_not_added_again(workspace: Workspace) -> None:
    """Neither the copy of one that is trained with nor a second copy; a frame that has none is."""
    stores = Stores(workspace.catalog, workspace.records)
    every = make_dataset(workspace, NewDataset(name="every", question=Question()))
    fkeys = Manifest.read(Path(every.manifest)).frames["fkey"].to_pylist()
    trained = make_dataset(workspace, NewDataset(name="few", question=Question(limit=3)))
    few = Manifest.read(Path(trained.manifest)).frames["fkey"].to_pylist()
    fkeys = [*few, *(fkey for fkey in fkeys if fkey not in few)]
    marks = {"a": (fkeys[0], fkeys[3]), "b": (fkeys[4], fkeys[5]), "ab": (fkeys[6],)}
    with workspace.whole_catalog.writing("marks") as connection:
        for mark, of in marks.items():
            connection.execute(
                "UPDATE lake.main.files SET duplicate = ? WHERE list_contains(?, fkey)",
                [mark, [*of]],
            )
    every_class = dict.fromkeys(class_names(), 1.0)
    wanted = Improvement(100, every_class)
    content, report, _ = improved_content(stores, trained, wanted, [], None)
    rows = content.table()["fkey"].to_pylist()
    assert len(rows) == len({*rows}) == len(fkeys) - 2
    assert fkeys[3] not in rows
    assert len({fkeys[4], fkeys[5]} & {*rows}) == 1
    assert {*fkeys[:3], *fkeys[6:]} <= {*rows}
    assert report["added"] == len(fkeys) - 2 - 3


def test_a_smaller_set_keeps_each_class_though_it_is_rare(many: Workspace) -> None:
    """Of no more frames than have every class, none is left for what is only unlike the others."""
    question = Question(where="scene <= '20180807_1512'", sample=300, seed=2)
    split = "train=0.75,validation=0.25"
    wide = make_dataset(many, NewDataset(name="wide", question=question, split=split))
    train = Manifest.read(Path(wide.manifest)).split("train").frames
    has = class_matrix(train, len(class_names())) > 0
    hashes = hashes_of(train["fkey"].to_pylist())
    targets = has.any(axis=0).astype(np.int64)
    needed = len(cover(packed(iter(has.T), len(hashes)), hashes, targets, 1).positions)
    assert 1 < needed < 20
    small = Session(many, is_command=True).datasets.reduce("wide", needed, seed=1)
    assert small.report is not None
    assert all(row["kept"] for row in small.report["classes"])
    assert len(small.report["classes"]) == targets.sum()


def test_a_training_set_keeps_what_says_most(validated: Validated) -> None:
    """Every class stays, what is unlike the rest rather than the rest, and the other splits whole.

    With a model, what it is weak in and unsure of comes first. Made again from its record, it is
    the same.
    """
    many = validated.workspace
    datasets = Session(many, is_command=True).datasets
    question = Question(where="scene <= '20180807_1512'", sample=400, seed=2)
    request = NewDataset(name="large", question=question, split="train=0.75,validation=0.25")
    large = make_dataset(many, request)
    before = Manifest.read(Path(large.manifest))
    train = before.split("train")
    small = datasets.reduce("large", 60, seed=1).model_dump()
    report, kept = small["report"], set(column(small, "fkey", "train"))
    assert (report["split"], report["frames"], report["kept"]) == ("train", len(train), 60)
    assert len(kept) == 60
    assert kept < set(train.frames["fkey"].to_pylist())
    assert column(small, "fkey", "validation") == (
        before.split("validation").frames["fkey"].to_pylist()
    )
    assert all(row["kept"] for row in report["classes"])
    assert datasets.reduce("large@1", 60, seed=1).version == 2
    shutil.rmtree(small["manifest"])
    assert rebuild_dataset(many, "large@2").content_id == small["id"]
    # "first" finds no bicycle, and is unsure of some frames.
    known = datasets.reduce("large@1", 60, model="first", seed=1).model_dump()
    of_bicycle = [
        next(row["kept"] for row in of["report"]["classes"] if row["class"] == "bicycle")
        for of in (known, small)
    ]
    assert of_bicycle[0] >= of_bicycle[1]
    assert known["question"]["reduced"][0]["uncertainty"] == "first_uncertainty"
    assert list(known["question"]["reduced"][0]["weak_slices"]) == ["camera"]
    for frames in (len(train), len(train) + 1):
        with pytest.raises(InvalidInput, match=r"split train has .* frames, and"):
            datasets.reduce("large@1", frames)


@pytest.mark.wide
def test_a_list_to_label_needs_no_frame_to_add(validated: Validated) -> None:
    """With no frame to add, or none asked for, the list comes alone; with neither it is refused."""
    models = Session(validated.workspace, is_command=True).models
    with validated.workspace.whole_catalog.writing("labels of a minute gone") as connection:
        connection.execute(
            "UPDATE lake.main.tags_frame SET labelled = 0 WHERE scene LIKE '20180807_1507%'"
        )
    listed = models.improve("first", frames=0, label=5)
    assert (listed.dataset, listed.nothing_added, len(listed.to_label)) == (None, None, 5)
    # A gap as long as the drawn months leaves no labelled frame.
    with pytest.raises(InvalidInput, match="no labelled frame"):
        models.improve("first", frames=5, min_gap_s=1e9)
    with validated.workspace.whole_catalog.writing("labels gone") as connection:
        connection.execute("UPDATE lake.main.tags_frame SET labelled = 0")
    alone = models.improve("first", frames=5, label=5)
    assert (alone.dataset, len(alone.to_label)) == (None, 5)
    assert "no labelled frame" in str(alone.nothing_added)
    with pytest.raises(InvalidInput, match="frames 0: expected 1 or more"):
        models.improve("first", frames=0)
    fewer = models.improve("first", frames=0, label=5, drop=alone.to_label[:2])
    assert fewer.to_label == alone.to_label[2:]


def test_what_cannot_be_improved_is_named(workspace: Workspace, tmp_path: Path) -> None:
    """A checkpoint and a folder, which have no validations of their own; a validation."""
    models = Session(workspace, is_command=True).models
    dataset = make_dataset(workspace, NewDataset(name="set", question=Question()))
    record(workspace, "v-1", "validate", dataset, "all")
    with pytest.raises(InvalidInput, match=r"first@20: expected a training job.*give first$"):
        models.improve("first@20")
    with pytest.raises(NotFound, match="a folder has neither dataset nor validations"):
        models.improve(str(tmp_path))
    with pytest.raises(NotFound, match="job v-1 is of kind validate; expected the name"):
        models.improve("v-1")


def test_no_frame_is_expected_to_help_where_none_has_the_class(workspace: Workspace) -> None:
    """The error says so, with the number of frames that were looked at and the class."""
    stores = Stores(workspace.catalog, workspace.records)
    trained = make_dataset(workspace, NewDataset(name="few", question=Question(limit=3)))
    for weak, classes in (({"car": 1.0, "unicorn": 1.0}, ("unicorn",)), ({"car": 0.0}, ())):
        wanted = Improvement(5, weak, classes=classes)
        with pytest.raises(NothingToAdd, match=r"is expected to help: none of \d+ shows (uni|car)"):
            improved_content(stores, trained, wanted, [], None)
