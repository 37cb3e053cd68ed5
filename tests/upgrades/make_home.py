"""A home with one of each thing, as this version writes it: what later versions must read.

    python -m tests.upgrades.make_home tests/upgrades/0.2.0.tar.xz

Of a release its archive is made once, and stays as it is.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from framesift_start import start

# Of source files: whole seconds, which every tar keeps.
WRITTEN_S = 1_790_000_000

# Jobs keep some of it in their records: nothing of the machine that makes the home.
ENVIRONMENT = {
    "FRAMESIFT_HOME": "home",
    "PATH": "/usr/bin:/bin",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}

PROGRAM = """\
import json, pathlib, sys
job = pathlib.Path(sys.argv[1])
with (job / "metrics.jsonl").open("a") as lines:
    for step in range(1, 4):
        print(json.dumps({"step": step, "name": "loss", "value": 1 / step}), file=lines)
(job / "said.txt").write_text("three steps")
"""

TRAINING = ("--height", "64", "--width", "96", "--max-steps", "2", "--batch-size", "1",
            "--model", "tests.training.own_networks:two_layers")  # fmt: skip


def made(folder: Path) -> None:
    """Make folder/source, folder/home and folder/backup.tar."""

    def framesift(*command: str) -> None:
        subprocess.run(
            [sys.executable, *start("api.cli.main"), *command],
            env=ENVIRONMENT,
            cwd=folder,
            check=True,
        )

    def table(name: str, rows: list[tuple[str, str]]) -> str:
        path = folder / name
        path.write_text("".join(f"{key},{value}\n" for key, value in rows))
        return str(path)

    framesift("sample-data", "--frames", "6", "--reduce", "8", "--seed", "7", "--out", "source")
    for path in (folder / "source").rglob("*"):
        os.utime(path, (WRITTEN_S, WRITTEN_S))
    framesift("source", "add", "drive", "source", "--platform", "IBM COS")
    framesift("ingest", "drive")
    images = sorted(path.name for path in (folder / "source").rglob("*_camera_*.png"))
    weather = [("filename", "weather"), *((name, "rain") for name in images[:3])]
    framesift("tags", "import", table("weather.csv", weather), "--family", "weather")
    framesift("tags", "group", "moving = car + bicycle")
    split = ("--split", "train=0.75,validation=0.25", "--split-by", "scene", "--seed", "1")
    framesift("dataset", "create", "streets", "--range", "rd_normal_street=1:", *split)
    framesift("dataset", "create", "rainy", "--where", "weather = 'rain'")
    framesift("dataset", "create", "rainy", "--range", "car=1:")  # version 2
    framesift("stage", "streets", "--prepare", "96x64")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    framesift(
        "run",
        "streets",
        "--name",
        "with-metrics",
        "--command",
        f"{sys.executable} {program} {{job}}",
    )
    framesift("run", "rainy", "--name", "without-metrics", "--command", "true")
    framesift("train", "streets", "--workers", "1", "--name", "first", *TRAINING)
    scored = ("--workers", "1", "--split", "validation", "--name", "scored", "--trust-model")
    framesift("validate", "first", "streets", *scored)
    framesift("tags", "import-scores", "scored")
    framesift("collection", "add", "rain", "datasource = 'drive'")
    framesift("catalog", "backup", "backup.tar")


def main(archive: str) -> None:
    """Make an archive of what `made` makes."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made(folder)
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            for name in ("source", "home", "backup.tar"):
                tar.add(folder / name, name)


if __name__ == "__main__":
    main(*sys.argv[1:])
