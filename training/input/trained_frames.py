"""Which frames a model was trained on, its parents' included: ``trained_frames.parquet``.

Written before the first step, so that a checkpoint has it as well as a finished model.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path
from pipeline.manifest import Manifest
from training.folder_file import opened_folder_file

FILE = "trained_frames.parquet"
_SCHEMA = pa.schema([("fkey", pa.string())])
_BATCH_ROWS = 65_536


def write_trained_frames(model_dir: Path, fkeys: Iterable[str], parent: Path | None) -> None:
    """Keep the frames of a run and those of the model that it begins with.

    Raises:
        BadFile: The parent's file is damaged.
        StorageError: The disk refuses.
    """
    trained = set(fkeys)
    if parent is not None:
        trained |= _read(parent) or set()
    table = pa.table({"fkey": sorted(trained)}, _SCHEMA)
    with atomic_path(model_dir / FILE, parents=True) as part:
        pq.write_table(table, part, compression="zstd")


def frames_trained_on(
    model_dir: Path, dataset: Mapping[str, Any], split: Manifest, name: str
) -> frozenset[str]:
    """Those of a split's frames that the model in ``model_dir`` was trained on.

    Args:
        model_dir: The model.
        dataset: What its model.json says it was trained on: a model of version 0.1.0 has no more,
            and then the same split of the same dataset is all of it, anything else nothing.
        split: The frames.
        name: The split's name.

    Raises:
        BadFile: The list is damaged.
    """
    fkeys = frozenset(split.frames["fkey"].to_pylist())
    trained = _read(model_dir)
    if trained is not None:
        return fkeys & trained
    same = (dataset.get("id"), dataset.get("split")) == (split.header.id, name)
    return fkeys if same else frozenset()


def _read(model_dir: Path) -> set[str] | None:
    path = model_dir / FILE
    try:
        with opened_folder_file(model_dir, FILE) as file, pq.ParquetFile(file) as parquet:
            if parquet.schema_arrow != _SCHEMA:
                raise BadFile("is no list of fkeys", str(path))
            found: set[str] = set()
            for batch in parquet.iter_batches(_BATCH_ROWS):
                found.update(batch.column(0).to_pylist())
            return found
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowException) as error:
        raise BadFile(f"is damaged: {' '.join(str(error).split())}", str(path)) from error
