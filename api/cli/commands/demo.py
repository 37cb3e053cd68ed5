"""framesift demo: the main job, end to end, by the commands a user would type."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from api.cli.tables.table import emit_table
from api.cli.terminal import heading, stdout
from catalog.errors import FramesiftError, InvalidInput
from framesift_start import start
from pipeline.jobs.installed import need_installed
from pipeline.jobs.request import JobPaths, read_json

_MARKER = ".framesift-demo"

REDBOOK_STATEMENTS = (
    """\
select sum(int(t_rd_normal_street.value)) / ((count(t_rd_normal_street.value)*1920*1208)/100) \
from t_rd_normal_street with ur;""",
    """\
select platform,datasource,filename from metaocean,t_front,t_center,t_bicycle where \
t_front.fkey=metaocean.fkey and int(t_front.value)=1 and t_center.fkey=metaocean.fkey and \
int(t_center.value)=1 and t_bicycle.fkey=metaocean.fkey and int(t_bicycle.value)>0""",
    """\
select platform,datasource,filename from metaocean,t_front,t_center,t_car,t_bicycle,t_pedestrian \
where t_front.fkey=metaocean.fkey and int(t_front.value)=1 and t_center.fkey=metaocean.fkey and \
int(t_center.value)=1 and t_car.fkey=metaocean.fkey and int(t_car.value)>=10000 and \
int(t_car.value)<=20000 and t_bicycle.fkey=metaocean.fkey and int(t_bicycle.value)>=3000 and \
int(t_bicycle.value)<=5000 and t_pedestrian.fkey=metaocean.fkey and \
int(t_pedestrian.value)>=5000 and int(t_pedestrian.value)<=6000""",
)
"""The three statements of the published proof of concept, as printed there."""

NEXT = (
    "framesift select --range bicycle=1: --camera front_center",
    "framesift dataset create val-bikes --range bicycle=1:",
    "framesift jobs show demo-train",
    "framesift serve --no-auth        # then: curl http://127.0.0.1:8008/v1/classes",
)
"""Commands that the demo prints as next steps in its home."""


@dataclass
class _Demo:
    """A running demo: its folder, and how long each step took."""

    folder: Path
    seconds: list[tuple[str, float]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """The demo's own Framesift home."""
        return self.folder / "home"

    def run(self, title: str, *commands: list[str]) -> None:
        """Run commands as a user would, showing each; the step's time is kept."""
        heading(f"{len(self.seconds) + 1}. {title}")
        began = time.monotonic()
        environment = {**os.environ, "FRAMESIFT_HOME": str(self.home)}
        environment.pop("FRAMESIFT_CACHE", None)
        for command in commands:
            stdout.print(f"$ framesift {shlex.join(command)}", style="bold")
            sys.stdout.flush()
            code = subprocess.run(
                [sys.executable, *start("api.cli.main"), *command],
                env=environment,
                check=False,
            ).returncode
            if code:
                raise FramesiftError(
                    f"the demo stopped: 'framesift {shlex.join(command)}' ended with exit code "
                    f"{code}; what it made so far is in {self.folder}"
                )
        self.seconds.append((title, time.monotonic() - began))


def demo(
    a2d2: Annotated[
        Path | None, typer.Option(help="Folder of real A2D2 files, instead of drawn frames.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Folder of the demo.")] = Path("demo"),
    frames: Annotated[int, typer.Option(min=8, help="Frames to draw.")] = 120,
    max_steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1200,
    train: Annotated[
        bool,
        typer.Option(help="Train and validate; --no-train does without TensorFlow and Horovod."),
    ] = True,
) -> None:
    """Run the main job end to end: ingest, query, select, stage, train, validate, report."""
    if train:
        need_installed("tensorflow", "horovod", "matplotlib")
    folder = folder.expanduser().absolute()
    _start_afresh(folder)
    run = _Demo(folder)
    if a2d2 is None:
        root = folder / "a2d2"
        run.run("Draw sample frames", ["sample-data", "--frames", str(frames), "--out", str(root)])
    else:
        root = a2d2.expanduser().absolute()
    source = ["source", "add", "a2d2", str(root), "--platform", "IBM COS", "--datasource", "a2d2"]
    run.run("Name the source", source)
    run.run("Ingest: count the pixels of every class", ["ingest", "a2d2"], ["classes"])
    run.run("Ask in SQL, as published", *(["sql", statement] for statement in REDBOOK_STATEMENTS))
    cars = ["--range", "car=10000:20000", "--camera", "front_center", "--limit", "5"]
    run.run("Select by ranges", ["select", *cars, "--order", "car desc"])
    split = ["--split", "train=0.75,validation=0.25", "--split-by", "scene"]
    chosen = ["--range", "rd_normal_street=1:", "--sample", "200", "--seed", "1"]
    run.run("Make a dataset", ["dataset", "create", "streets", *chosen, *split])
    run.run("Stage it near the job", ["stage", "streets", "--prepare", "240x152"])
    if train:
        _train_and_validate(run, max_steps)
        _show_scores(run)
    _show_end(run, train)


def _train_and_validate(run: _Demo, max_steps: int) -> None:
    # As many images as 300 steps of the usual 4 a worker: more steps learn the rare classes better.
    length = ["--batch-size", "1", "--max-steps", str(max_steps)]
    training = ["train", "streets", "--workers", "2", *length, "--name", "demo-train"]
    run.run("Train with Horovod on 2 processes", training)
    validate = ["validate", "demo-train", "streets", "--workers", "2", "--name", "demo-validate"]
    run.run("Validate, fanned out over 2 workers", validate)


def _start_afresh(folder: Path) -> None:
    """Remove an earlier demo's home; drawn frames stay and are not drawn again.

    Raises:
        InvalidInput: The folder holds something that no demo made.
    """
    marker = folder / _MARKER
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise InvalidInput(f"{folder}: not empty and not a demo's folder; give another --folder")
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    shutil.rmtree(folder / "home", ignore_errors=True)


def _report_folder(run: _Demo) -> Path:
    return JobPaths(run.home / "jobs" / "demo-validate").report


def _show_scores(run: _Demo) -> None:
    training = read_json(JobPaths(run.home / "jobs" / "demo-train").model / "metrics.json")
    report = read_json(_report_folder(run) / "report.json")
    heading("What came out")
    absent = ", ".join(report["absent_classes"]) or "none"
    emit_table(
        ("", ""),
        [
            ("loss, first step", f"{training['first_loss']:.3f}"),
            ("loss, last steps", f"{training['loss']:.3f}"),
            ("frames validated", report["frames"]),
            ("mean IoU", f"{report['miou']:.3f}"),
            (
                f"mean IoU of always saying {report['baseline']['class']}",
                f"{report['baseline']['miou']:.3f}",
            ),
            ("classes that the validation set lacks", absent),
        ],
    )


def _show_end(run: _Demo, trained: bool) -> None:
    heading("How long it took")
    total = sum(seconds for _, seconds in run.seconds)
    steps = [*run.seconds, ("together", total)]
    emit_table(("step", "s"), [(title, f"{seconds:.1f}") for title, seconds in steps])
    heading("Where things are, and what to try next")
    if trained:
        stdout.print(f"report     {_report_folder(run) / 'report.html'}")
        stdout.print(f"matrix     {_report_folder(run) / 'confusion_matrix.png'}")
    stdout.print(f"home       {run.home}")
    scripts = shlex.quote(sysconfig.get_path("scripts"))
    stdout.print(f'\nexport PATH={scripts}:"$PATH" FRAMESIFT_HOME={shlex.quote(str(run.home))}')
    for line in NEXT:
        if trained or "demo-train" not in line:
            stdout.print(line)
