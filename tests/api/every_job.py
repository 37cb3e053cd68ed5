"""A home with a job of every kind and state, whose programs measured what nobody foresaw."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from api.schemas.jobs import Kind
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Job, Task
from catalog.values import now
from pipeline.job_state import FINISHED, JobState
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import JobPaths
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make

KINDS: tuple[str, ...] = get_args(Kind)
STATES: tuple[str, ...] = get_args(JobState)

HOSTILE = "<b onclick=x>bad</b>\x1b[31m\udc80"
"""What a program may call a metric, and say in it."""

_OURS = (
    "step", "max_steps", "epochs", "loss", "images_per_s", "frames", "frames_seen", "miou",
    "miou_low", "miou_high", "miou_difference", "miou_difference_low", "miou_difference_high",
    "frequency_weighted_iou", "boundary_iou", "pixel_accuracy", "ece", "files", "of_files",
    "warnings", "weakest", "below", "regressions", "compared_with", "state", "checkpoints",
    "tables", "trainings", "of_trainings",
)  # fmt: skip
"""Names under which our own jobs measure something."""


_CHECKPOINT = {"step": 10**400, "path": [HOSTILE], "metrics": {HOSTILE: HOSTILE}}
_TABLE = {"title": [HOSTILE], "columns": [HOSTILE, 2], "rows": [[HOSTILE, None], [1], "no", {}]}


def _all(value: Any) -> dict[str, Any]:
    return dict.fromkeys(_OURS, value)


METRICS: dict[str, dict[str, Any]] = {
    "none": {},
    "ours": {
        "step": 3, "max_steps": 20, "loss": 0.5, "frames": 90, "frames_seen": 40, "miou": 0.31,
    },
    "loss": {"loss": 1.17, "steps": 6, "frames": 20},
    "begun": {"max_steps": 20, "of_files": 7},
    "nothing": _all(None),
    "nan": {**_all(float("nan")), "loss": float("inf")},
    "texts": _all(HOSTILE),
    "truths": _all(True),
    "huge": _all(10**400),
    "large": {**_all(1e308), "note": "x" * 300_000},
    "below zero": _all(-5),
    "lists": _all([HOSTILE, {"score": "miou", **_CHECKPOINT, **_TABLE}, None, 3]),
    "nested": _all({"a": {"b": [None, {"c": HOSTILE}]}}),
    "names": {HOSTILE: HOSTILE, "": 1, "items": 2, "get": [3], "__class__": 4, "x" * 5000: 5},
}  # fmt: skip
"""Metrics by what is odd about them."""

_LINES = (
    '{"step": 1, "loss": 2.5}', '{"step": true, "loss": 1}', '{"step": 2, "loss": "low"}',
    '{"step": 3, "loss": NaN}', '{"step": -4, "loss": 1' + 400 * "0" + "}", "[" * 100_000, "[1]",
    '{"step": 1' + 400 * "0" + ', "loss": 0.5, "miou": 1e308}', '{"step": 6, "miou": -1e308}',
    '{"step": 7, "loss": true, "images_per_s": {"a": 1}}', '{"step": 8, "lo',
)  # fmt: skip
"""Lines of a metrics.jsonl."""


@dataclass(frozen=True)
class EveryJob:
    """The home, and the names of its jobs.

    Attributes:
        home: Its folder.
        names: All jobs.
        ended: Those that have ended, by name, with their state.
    """

    home: Path
    names: tuple[str, ...]
    ended: dict[str, str]


def home_with_every_job(catalogued: Path, folder: Path) -> EveryJob:
    """A job of each kind with each metrics; each kind and each metrics in each state of a job.

    Jobs have tasks or none, and of every third the folder is gone.
    """
    home = copy_home(catalogued, folder)
    workspace = open_home(home)
    make(workspace, "city")
    dataset_id = recorded_dataset(workspace.records, "city").id
    names: list[str] = []
    ended: dict[str, str] = {}
    with workspace.records.session() as session:
        for number, (kind, title, state) in enumerate(_combinations()):
            name = f"{kind}-{title.replace(' ', '-')}"
            paths = JobPaths(workspace.jobs / name)
            if (number + 2) % 3:
                _fill(paths)
            names.append(name)
            if state in FINISHED:
                ended[name] = state
            session.add(_job(name, kind, state, METRICS[title], paths, dataset_id, number))
    workspace.close()
    return EveryJob(home, tuple(names), ended)


def _combinations() -> Iterator[tuple[str, str, str]]:
    for n, kind in enumerate(KINDS):
        for m, title in enumerate(METRICS):
            yield kind, title, STATES[(n + m - 2) % len(STATES)]


def _job(
    name: str,
    kind: str,
    state: str,
    metrics: dict[str, Any],
    paths: JobPaths,
    dataset_id: int,
    number: int,
) -> Job:
    has_begun = state not in ("pending", "staging", "queued")
    tasks = [
        Task(position=at, name=step, state=state if step == "run" else "done", backend="local")
        for at, step in enumerate(("stage", "run", "collect"))
    ]
    return Job(
        name=name, kind=kind, backend="local", state=state, metrics=metrics,
        dataset_id=dataset_id if kind in ("train", "validate", "predict", "run") else None,
        error="no such class" if state == "failed" else "",
        waits="" if has_begun else "for one of 1 slot",
        request={"stages": [], "settings": {"batch_size": 4, "seed": number} if number % 2 else {}},
        started=now() if has_begun else None, finished=now() if state in FINISHED else None,
        tasks=tasks if number % 4 == 0 and state in FINISHED else [],
        paths={"folder": str(paths.folder), "logs": str(paths.logs),
               "model_dir": str(paths.model)},
    )  # fmt: skip


def _fill(paths: JobPaths) -> None:
    """The files of a job, none as a page would have it."""
    for folder in (paths.logs, paths.model, paths.report, paths.log("train", 7)):
        folder.mkdir(parents=True)
    paths.log("train", 0).write_bytes(b"step 1\n\xff\x00\x1b[31m" + "日本".encode()[:-1])
    paths.log("train", 1).symlink_to("gone")
    output = ProgramPaths(paths.folder).output
    output.mkdir()
    named = [line.replace("loss", "value").replace("{", '{"name": "loss", ') for line in _LINES]
    (output / "metrics.jsonl").write_text("\n".join(named))
    (output / "checkpoints.json").write_text(json.dumps({"checkpoints": [*_LINES, None, {}]}))
    (paths.folder / "scalars.json").write_text("[1]")
    (paths.model / "metrics.jsonl").write_text("\n".join(_LINES))
    (paths.model / "evaluations.jsonl").write_text("\n".join(_LINES))
    (paths.model / "run.json").write_text(json.dumps({"settings": "none"}))
    (paths.report / "report.json").write_text(json.dumps({"classes": 3, "miou": "good"}))
    (paths.report / "metrics.json").write_text("[]")
