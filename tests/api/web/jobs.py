"""A home with jobs as they stand after a training, its validation, and one that failed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Job
from catalog.values import now
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import JobPaths
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.api.test_statistics import a_report
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make
from training.merge_scores import FRAME_CELLS_SCHEMA

HOSTILE = "<b onclick=x>bad</b>"
"""What a log or an error may say."""

_OF_PROGRAM = {
    "checkpoints": [
        {"step": step, "path": f"{HOSTILE}-{step}.pt", "metrics": {"miou": 0.25}}
        for step in (1, 1200)
    ],
    "warnings": [f"metrics.jsonl: 1 line is left out {HOSTILE}"],
}


def home_with_jobs(catalogued: Path, folder: Path) -> Path:
    """The home: dataset city@1; jobs first, v-first, broken and mine, a user's program."""
    home = copy_home(catalogued, folder)
    workspace = open_home(home)
    make(workspace, "city", split="train=0.5,validation=0.5")
    dataset = recorded_dataset(workspace.records, "city")
    model_dir = workspace.jobs / "first" / "model"
    for name, kind, state, metrics in (
        ("first", "train", "done", {"step": 20, "max_steps": 20, "loss": 0.42}),
        ("v-first", "validate", "done", {"miou": 0.31}),
        ("broken", "train", "failed", {"step": 3, "max_steps": 20, "loss": 2.5}),
        ("mine", "run", "failed", {"step": 3, "loss": 1.5, **_OF_PROGRAM}),
    ):
        paths = JobPaths(workspace.jobs / name)
        for made in (paths.logs, paths.model, paths.report, ProgramPaths(paths.folder).output):
            made.mkdir(parents=True)
        (paths.logs / "train-0.log").write_text(f"step 1\n{HOSTILE}\n")
        with workspace.records.session() as session:
            session.add(
                Job(
                    name=name, kind=kind, backend="local", state=state, dataset_id=dataset.id,
                    error=HOSTILE if state == "failed" else "", metrics=metrics,
                    request={"stages": [], "settings": {"batch_size": 4, "seed": len(name)}},
                    started=now(), finished=now(),
                    paths={"folder": str(paths.folder), "logs": str(paths.logs),
                           "model_dir": str(model_dir)},
                )
            )  # fmt: skip
    lines = [{"step": step, "loss": 3 / step, "images_per_s": 9.5} for step in range(1, 21)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    of_broken = [
        {"step": step, "loss": 3.5 - step / 3, "images_per_s": 6 + step} for step in (1, 2, 3)
    ]
    (workspace.jobs / "broken" / "model" / "metrics.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in of_broken)
    )
    (model_dir / "metrics.jsonl").write_text(text + '{"step": 21, "lo')
    logged = [(1, "loss", 9.5), (1, HOSTILE, 1), (2, "loss", 7.5), (3, "loss", 1.5), (3, "miou", 0)]
    rows = [{"step": step, "name": name, "value": value} for step, name, value in logged]
    (ProgramPaths(workspace.jobs / "mine").output / "metrics.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    scored = [{"step": step, "miou": step / 50, "pixel_accuracy": 0.5} for step in (10, 20)]
    (model_dir / "evaluations.jsonl").write_text("".join(json.dumps(e) + "\n" for e in scored))
    _report(JobPaths(workspace.jobs / "v-first").report, workspace, Path(dataset.manifest))
    workspace.close()
    return home


def _report(folder: Path, workspace: Any, manifest: Path) -> None:
    report = a_report(manifest, folder)
    report["model"] = {"name": "first", "sha256": "a" * 64}
    (folder / "report.json").write_text(json.dumps(report))
    fkeys = select_frames(workspace.catalog, Question()).frames["fkey"].to_pylist()
    scores = {
        "fkey": fkeys,
        "accuracy": [0.5] * len(fkeys),
        "uncertainty": [n / len(fkeys) for n in range(len(fkeys))],
    }
    pq.write_table(pa.table(scores), folder / "frame_scores.parquet")
    cell = {"truth": "car", "predicted": "sky"}
    cells = [{"fkey": fkey, **cell, "pixels": 3 * n} for n, fkey in enumerate(fkeys[:3], 1)]
    gone = {"fkey": "local:a2d2:gone.png", "truth": "sky", "predicted": "car", "pixels": 5}
    table = pa.Table.from_pylist([*cells, gone], FRAME_CELLS_SCHEMA)
    pq.write_table(table, folder / "frame_cells.parquet")
