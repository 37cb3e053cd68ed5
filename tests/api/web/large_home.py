"""Homes of many classes, scenes, datasets, jobs and accounts, with long and right-to-left names.

The sample frames are among theirs, so that some have pictures; the others are rows of the catalog.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from api.services.accounts.callers import NOBODY_ASKED
from api.services.session import Session
from api.workspace import Workspace
from catalog.accounts import tokens, users
from catalog.records.datasets import recorded_dataset
from catalog.records.sources import add_source
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job, Scan, ScanProblem, Source
from catalog.records.tag_definitions import define_class_tags
from catalog.records.user_tables import Token, User
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from catalog.values import now
from ingest.labels.class_list import ClassList
from pipeline.jobs.request import JobPaths
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.api.every_job import home_with_every_job
from tests.pipeline.homes import open_home

LONG = "a name of two hundred characters "
LONG = (LONG * 8)[:199] + "x"
"""200 characters with blanks."""

UNBROKEN = "Name-without-a-place-to-break-" + 170 * "x"
"""200 characters without any."""

ARABIC = "مفترق الطرق (٣) عند الجسر"
HEBREW = "צומת 12 - גשר [צפון]"

ODD = (LONG, UNBROKEN, ARABIC, HEBREW)

_LONG_NAME = 127 * "n"
"""As long as names of accounts, datasets and questions may be, but for one."""

_FRAMES_OF_A_SCENE = 2


@dataclass(frozen=True)
class LargeHome:
    """A home, and what stands in it."""

    home: Path
    jobs: tuple[str, ...]
    """Names of its jobs of every kind and state."""
    tokens: dict[str, str]
    """Of root (admin), dora (dataadmin, may write) and otto (datauser, may read)."""
    fkeys: tuple[str, ...]
    """Frames: of the sample, of a long name, of a right-to-left one."""


def large_home(
    catalogued: Path,
    folder: Path,
    *,
    classes: int = 150,
    scenes: int = 2_000,
    datasets: int = 10_000,
    accounts: int = 1_000,
    models: int = 400,
) -> LargeHome:
    """A copy of the catalogued home, grown.

    Args:
        classes: How many more than the sample's 38.
        scenes: How many more; the first of them have odd names.
        datasets: How many more.
        accounts: How many more users, tokens and sources.
        models: How many trainings that are done, and predictions, more.
    """
    jobs = home_with_every_job(catalogued, folder)
    workspace = open_home(jobs.home)
    records = workspace.records
    names = {f"more_{number}": _class_name(number) for number in range(classes)}
    add_source(
        records,
        Source(
            name=_LONG_NAME, uri=f"/data/{ARABIC}/{UNBROKEN}", platform="IBM COS", cluster="local",
            datasource="more", class_list=ClassList.from_colours({"#000001": "Class 7"}).to_json(),
        ),
    )  # fmt: skip
    define_class_tags(records, names)
    _load(workspace.whole_catalog, [*names], scenes)
    _add_datasets(records, datasets)
    of_users = _add_accounts(records)
    add_many(records, accounts)
    _add_models(records, models)
    _add_questions(workspace)
    _add_validations(workspace, [*names.values()], scenes)
    _add_problems(records)
    odd = select_frames(workspace.catalog, Question(scenes=(_scene(1), _scene(2)))).frames
    sample = select_frames(workspace.catalog, Question(where="datasource = 'a2d2'")).frames
    fkeys = (sample["fkey"].to_pylist()[0], *odd["fkey"].to_pylist()[::_FRAMES_OF_A_SCENE])
    workspace.close()
    return LargeHome(jobs.home, (*jobs.names, "v-large", "v-other"), of_users, fkeys)


def _class_name(number: int) -> str:
    return ODD[number] if number < len(ODD) else f"Class number {number}"


def _scene(number: int) -> str:
    return ODD[number] if number < len(ODD) else f"scene_{number:05}"


def _load(store: CatalogStore, tags: list[str], scenes: int) -> None:
    """Two frames of each scene, by turns of seven cameras; each class in ever fewer of them."""
    add_class_tags(store, tags)
    cameras = [*("front_center", "front_left", "front_right", "side_left", "side_right"), *ODD[:3]]
    listed = ", ".join(_quoted(camera) for camera in cameras)
    odd = ", ".join(_quoted(_scene(number)) for number in range(len(ODD)))
    drawn = (
        f"SELECT i, CASE WHEN i // {_FRAMES_OF_A_SCENE} < {len(ODD)} "
        f"THEN [{odd}][i // {_FRAMES_OF_A_SCENE} + 1] "
        f"ELSE 'scene_' || lpad((i // {_FRAMES_OF_A_SCENE})::VARCHAR, 5, '0') END AS scene, "
        f"[{listed}][i % {len(cameras)} + 1] AS camera "
        f"FROM range({_FRAMES_OF_A_SCENE * scenes}) AS drawn(i)"
    )
    image, label = (f"scene || '/{kind}/' || i || '.png'" for kind in ("camera", "label"))
    files = " UNION ALL ".join(
        f"SELECT 'more' AS datasource, 'INDEX' AS operation, 'SCAN' AS ingesttype, "
        "'MO1' AS revision, '' AS site, 'IBM COS' AS platform, 'local' AS cluster, i AS inode, "
        f"'more/' AS path, {name} AS filename, 'png' AS filetype, "
        "TIMESTAMP '2020-04-01' + to_seconds(i) AS mtime, 1 AS scangen, 'system' AS tier, "
        f"2000000 + hash(i) % 2000000 AS size, 'local:more:' || {name} AS fkey FROM ({drawn})"
        for name in (image, label)
    )
    pixels = ", ".join(
        f"CASE WHEN hash(i, {number}) % {len(tags)} >= {number // 2} "
        f'THEN (exp(hash(i, {number}) % 1000 / 1000.0 * 7) * 100)::INTEGER ELSE 0 END AS "{tag}"'
        for number, tag in enumerate(tags)
    )
    fkey = f"'local:more:' || {image} AS fkey"
    frame = (
        "scene, camera, i::INTEGER AS frame_number, 1920 AS image_width, 1208 AS image_height, "
        f"{label} AS label_file, 1 AS labelled"
    )
    with store.writing("many frames", "tests") as connection:
        connection.execute(f"INSERT INTO files BY NAME {files}")
        connection.execute(
            f"INSERT INTO class_pixels BY NAME SELECT {fkey}, 0 AS unknown_pixels, {pixels} "
            f"FROM ({drawn})"
        )
        connection.execute(f"INSERT INTO tags_frame BY NAME SELECT {fkey}, {frame} FROM ({drawn})")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _add_datasets(records: RecordStore, datasets: int) -> None:
    city = recorded_dataset(records, "city")
    columns = [one.key for one in Dataset.__table__.columns if one.key not in ("id", "name")]
    values = {name: getattr(city, name) for name in columns}
    odd = {"description": f"{ARABIC}. {UNBROKEN}", "owner": _LONG_NAME}
    split = {_LONG_NAME[:60]: 12, ARABIC: 12}
    with records.session() as session:
        rows = [values | {"name": _numbered("many", n), "created": now()} for n in range(datasets)]
        session.execute(insert(Dataset), rows)
        session.add(Dataset(name=_LONG_NAME, **values | odd | {"splits": split}))


def _numbered(word: str, number: int) -> str:
    """A name that begins like others; those after the first hundred are long."""
    name = f"{word}-{number:05}"
    return name if number < 100 else f"{name}-{(120 - len(name)) * 'x'}"


def _add_models(records: RecordStore, models: int) -> None:
    """Trainings that are done, and the prediction of each, of the long dataset."""
    dataset_id = recorded_dataset(records, _LONG_NAME).id
    with records.session() as session:
        session.add_all(
            Job(
                name=_numbered(word, n), kind=kind, backend="local", state="done", error="",
                metrics={}, dataset_id=dataset_id, paths={"folder": "/none", "model_dir": "/none"},
                request={"stages": [], "settings": {"model": _numbered("trained", n)}},
                started=now(), finished=now(),
            )
            for word, kind in (("trained", "train"), ("predicted", "predict"))
            for n in range(models)
        )  # fmt: skip


def _add_accounts(records: RecordStore) -> dict[str, str]:
    """Three users, and one of a long name, which has tokens and audit entries."""
    made = {}
    for name, role, scope in (
        ("root", "admin", "admin"), ("dora", "dataadmin", "write"), ("otto", "datauser", "read"),
        (_LONG_NAME, "dataadmin", "read"),
    ):  # fmt: skip
        users.add(records, name, [role], None)
        made[name] = tokens.create(
            records, name, f"ci-{_LONG_NAME[:120]}", scope, timedelta(days=1)
        )[1]
    return made


def add_many(records: RecordStore, count: int) -> None:
    """Users, sources that were never scanned, and tokens of root and of otto by turns."""
    with records.session() as session:
        holders = session.query(User).filter(User.name.in_(("otto", "root"))).all()
        session.add_all(User(name=f"user-{n:05}", roles=["datauser"]) for n in range(count))
        session.add_all(
            Source(name=f"source-{n:05}", uri=f"/data/source-{n:05}", platform="local",
                   cluster="local", datasource=f"source-{n:05}")
            for n in range(count)
        )  # fmt: skip
        session.add_all(
            Token(user_id=holders[n % 2].id, name=f"token-{n:05}", scope="read",
                  digest=f"{n:064}", expires=now() + timedelta(days=1))
            for n in range(count)
        )  # fmt: skip


def _add_questions(workspace: Workspace) -> None:
    session = Session(workspace, NOBODY_ASKED)
    session.saved_questions.save("cars", {"where": "car > 1000"}, shared=True)
    session.saved_questions.save(_LONG_NAME, {"scenes": [ARABIC, UNBROKEN]}, shared=True)
    session.saved_questions.save(
        "right-to-left", {"cameras": [ARABIC], "where": f"scene <> '{HEBREW}'"}, shared=True
    )
    fkeys = select_frames(workspace.catalog, Question(where="datasource = 'a2d2'")).frames["fkey"]
    for fkey, value in zip(fkeys.to_pylist(), (*ODD, ARABIC), strict=False):
        session.tags.mark([fkey], {"weather": value[:200], "quality": value[:120]})


def _add_validations(workspace: Workspace, names: list[str], scenes: int) -> None:
    """Two finished validations whose reports have every class, camera and scene, all confused."""
    folder = workspace.jobs
    dataset_id = recorded_dataset(workspace.records, "city").id
    for name, miou in (("v-large", 0.3), ("v-other", 0.4)):
        paths = JobPaths(folder / name)
        paths.report.mkdir(parents=True)
        (paths.report / "report.json").write_text(json.dumps(_report(names, scenes, miou)))
        with workspace.records.session() as session:
            session.add(
                Job(
                    name=name, kind="validate", backend="local", state="done", error="",
                    metrics={"miou": miou}, dataset_id=dataset_id,
                    request={"stages": [], "settings": {}}, started=now(), finished=now(),
                    paths={"folder": str(paths.folder), "logs": str(paths.logs),
                           "model_dir": str(paths.model)},
                )
            )  # fmt: skip


def _report(names: list[str], scenes: int, miou: float) -> dict[str, Any]:
    count = len(names)
    matrix = [
        [1_000_000 if row == column else 17 * (row + column) + 1 for column in range(count)]
        for row in range(count)
    ]
    return {
        "classes": names, "confusion_matrix": matrix, "miou": miou, "pixel_accuracy": 0.9,
        "per_class": [
            {"class": name, "tag": f"more_{number}", "iou": miou, "iou_interval": [0.1, 0.5],
             "recall": 0.4, "precision": 0.5, "frames": 12, "truth_pixels": 1_000_000,
             "predicted_pixels": 1_000_000}
            for number, name in enumerate(names)
        ],
        "slices": {
            "camera": [{"camera": name, "frames": 5, "miou": 0.3} for name in ODD],
            "scene": [{"scene": _scene(n), "frames": 2, "miou": 0.3} for n in range(scenes)],
        },
        "baseline": {}, "frames": 24, "ignored_pixels": 0, "absent_classes": [], "shards": 1,
        "dataset": {"name": "city", "version": 1}, "model": {"name": "first", "step": 3},
    }  # fmt: skip


def _add_problems(records: RecordStore) -> None:
    """A scan that failed, with problems of long names."""
    with records.session() as session:
        source = session.query(Source).filter_by(name=_LONG_NAME).one()
        scan = Scan(source_id=source.id, state="failed", counts={"files": 3}, error=UNBROKEN)
        session.add(scan)
        session.flush()
        session.add_all(
            ScanProblem(
                source_id=source.id, scan_id=scan.id, kind="bad_label", key=f"{name}/{ARABIC}.png",
                reason=f"no PNG: {UNBROKEN}",
            )
            for name in ODD
        )  # fmt: skip
