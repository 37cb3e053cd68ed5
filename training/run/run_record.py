"""The record of a training run: ``run.json`` in the model's folder.

What was trained, on what, by which program, where, and what came of it; each beginning of the run
adds what it began with.
"""

import os
import platform
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json
from catalog.storage.to_disk import tree_to_disk
from pipeline.manifest import ManifestHeader
from pipeline.runs.accelerators import OF_ACCELERATORS
from training.folder_file import read_folder_file
from training.run.checkpoint import listed_checkpoints
from training.run.code_version import code_version
from training.run.metrics_log import SUMMARY_FILE
from training.strict_json import strict_json

RECORD_FILE = "run.json"
FORMAT = 1
_MOST_BYTES = 16 << 20
_PACKAGES = ("framesift", "tensorflow-cpu", "tensorflow", "keras", "horovod", "numpy", "pyarrow")
_VARIABLES = (*OF_ACCELERATORS, "SLURM_JOB_ID")
_SECRET = ("KEY", "SECRET", "TOKEN", "PASSWORD")


def begin_record(
    model_dir: Path,
    header: ManifestHeader,
    about: Mapping[str, Any],
    workers: int,
    devices: Sequence[str],
    step: int,
) -> None:
    """Write that the run begins, or goes on after ``step``.

    Args:
        about: The model.json that the run will write.
        workers: Of all machines.
    """
    start = {
        "time": _now(),
        "step": step,
        "workers": workers,
        "host": socket.gethostname(),
        "code": code_version(),
        "environment": _environment(devices),
    }
    starts = _read(model_dir).get("begun", []) if step else []
    record = {
        "format": FORMAT,
        "dataset": {
            **about["dataset"],
            "question": header.question,
            "snapshot": header.snapshot,
            "seed": header.seed,
            "parents": list(header.parents),
        },
        "network": about["network"],
        "classes": list(about["classes"]),
        "class_map": about["class_map"],
        "parent": about["parent"],
        "settings": about["settings"],
        "begun": [*starts, start],
        "finished": None,
    }
    atomic_write(model_dir / RECORD_FILE, strict_json(record), parents=True)


def finish_record(model_dir: Path, sha256: str) -> None:
    """Add what came of the run: metrics, checkpoints, and the model's digest."""
    tree_to_disk(model_dir)  # with the record the run has ended: all that it wrote is there
    record = _read(model_dir) | {
        "finished": _now(),
        "sha256": sha256,
        "metrics": parsed_json(read_folder_file(model_dir, SUMMARY_FILE, _MOST_BYTES)),
        "checkpoints": listed_checkpoints(model_dir),
    }
    atomic_write(model_dir / RECORD_FILE, strict_json(record))


def _environment(devices: Sequence[str]) -> dict[str, Any]:
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    variables = {
        name: value
        for name, value in sorted(os.environ.items())
        if any(fnmatchcase(name, pattern) for pattern in _VARIABLES)
        and not any(word in name for word in _SECRET)
    }
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": packages,
        "cores": os.cpu_count(),
        "devices": list(devices),
        "variables": variables,
    }


def _read(model_dir: Path) -> dict[str, Any]:
    """The record; empty where there is none that can be read."""
    try:
        record = parsed_json(read_folder_file(model_dir, RECORD_FILE, _MOST_BYTES))
    except (BadFile, FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
