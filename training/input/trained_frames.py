"""Frames that a model was trained on, its parents' included: ``trained_frames.parquet``.

A model whose parent has no list has none, for nobody knows all of its frames.

And their scenes, ``trained_scenes.json``: frames of one scene resemble each other.

Written before the first step, so that a checkpoint has it as well as a finished model.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_path, atomic_write
from pipeline.manifest import Manifest
from training.folder_file import opened_folder_file, read_folder_file

FILE = "trained_frames.parquet"
SCENES_FILE = "trained_scenes.json"
ABOUT_TRAINED = (FILE, SCENES_FILE)
"""Files that go with a copy of the model."""
_MOST_BYTES = 64 << 20
_SCHEMA = pa.schema([("fkey", pa.string())])
_BATCH_ROWS = 65_536


def write_trained_frames(model_dir: Path, fkeys: Iterable[str], parent: Path | None) -> bool:
    """Keep the frames of a run and those of the model that it begins with.

    Returns:
        True; False where the parent has no list: then the model has none.
    """
    of_parent = set[str]() if parent is None else _read(parent)
    if of_parent is None:
        _remove(model_dir / FILE)
        return False
    table = pa.table({"fkey": sorted({*fkeys, *of_parent})}, _SCHEMA)
    with atomic_path(model_dir / FILE, parents=True) as partial_path:
        pq.write_table(table, partial_path, compression="zstd")
    return True


def write_trained_scenes(model_dir: Path, scenes: Iterable[str], parent: Path | None) -> None:
    """Keep the scenes of a run and those of the model that it begins with."""
    trained = set(scenes) | (scenes_trained_on(parent) if parent is not None else set())
    atomic_write(model_dir / SCENES_FILE, json.dumps(sorted(trained)), parents=True)


def write_trained(model_dir: Path, manifest: Path, split: str) -> None:
    """Keep frames and scenes of a split that a model of another program was trained on."""
    frames = Manifest.read(manifest).split(split).frames
    write_trained_frames(model_dir, frames["fkey"].to_pylist(), None)
    write_trained_scenes(model_dir, frames["scene"].to_pylist(), None)


def scenes_trained_on(model_dir: Path) -> set[str]:
    """The scenes that the model in ``model_dir`` was trained on; none where it has no list.

    Raises:
        BadFile: The list is damaged.
    """
    if not (model_dir / SCENES_FILE).exists():
        return set()
    try:
        scenes = json.loads(read_folder_file(model_dir, SCENES_FILE, _MOST_BYTES))
    except ValueError as error:
        raise BadFile(f"is no JSON: {error}", str(model_dir / SCENES_FILE)) from error
    if not (isinstance(scenes, list) and all(isinstance(scene, str) for scene in scenes)):
        raise BadFile("is no list of scenes", str(model_dir / SCENES_FILE))
    return set(scenes)


def frames_trained_on(
    model_dir: Path, dataset: Mapping[str, Any], split: Manifest, name: str
) -> frozenset[str] | None:
    """Those of a split's frames that the model in ``model_dir`` was trained on; None if unknown.

    Args:
        dataset: What its model.json says it was trained on: where the list is missing, the same
            split of the same dataset is all of it, and of anything else nobody knows.
        name: The split's name.
    """
    fkeys = frozenset(split.frames["fkey"].to_pylist())
    trained = _read(model_dir)
    if trained is not None:
        return fkeys & trained
    same = (dataset.get("id"), dataset.get("split")) == (split.header.id, name)
    return fkeys if same else None


def _remove(path: Path) -> None:
    """Remove the list of an earlier run in the same folder."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: cannot be removed: {error.strerror}", str(path)) from error


def _read(model_dir: Path) -> set[str] | None:
    path = model_dir / FILE
    try:
        with opened_folder_file(model_dir, FILE) as file, pq.ParquetFile(file) as parquet:
            if parquet.schema_arrow != _SCHEMA:
                raise BadFile("is no list of fkeys", str(path))
            fkeys: set[str] = set()
            for batch in parquet.iter_batches(_BATCH_ROWS):
                fkeys.update(batch.column(0).to_pylist())
            return fkeys
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        raise BadFile(f"is damaged: {' '.join(str(error).split())}", str(path)) from error
