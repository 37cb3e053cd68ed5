"""The scores of predicted frames on disk: a file for each shard, which says what it is of."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile

_KEY = b"framesift"


@dataclass(frozen=True)
class About:
    """The identity of a shard's scores.

    Attributes:
        model_sha256: Digest of the model's weights' file.
        model_dir: Where the model lay, for people.
        dataset_id: The dataset's id.
        split: The split predicted.
        split_frames: Frames of the whole split.
        shard: This shard, from 0.
        shards: Number of shards.
        dealt: How frames were dealt to shards: those of another release do not belong to these.
    """

    model_sha256: str
    model_dir: str
    dataset_id: str
    split: str
    split_frames: int
    shard: int
    shards: int
    dealt: str


BY_SIZE = "by size"
"""Name of the order in which pipeline.runs.shard_order deals frames to shards."""


def schema_of(tags: Sequence[str], about: About) -> pa.Schema:
    """Columns of a shard's scores; of each class tag the pixels that were taken for it."""
    fields = [
        pa.field("fkey", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("picture", pa.string(), nullable=False),
        pa.field("uncertainty", pa.float64(), nullable=False),
        pa.field("margin", pa.float64(), nullable=False),
        *(pa.field(tag, pa.int32(), nullable=False) for tag in tags),
    ]
    return pa.schema(fields, {_KEY: json.dumps(asdict(about)).encode()})


def shard_scores(results_dir: Path, shard: int, shards: int) -> Path:
    """The file of a shard's scores."""
    return results_dir / f"scores-{shard:05d}-of-{shards:05d}.parquet"


def is_written(path: Path, about: About) -> bool:
    """True where the whole scores of this very shard are on disk."""
    try:
        scores, _ = read_scores(path)
    except (FileNotFoundError, BadFile):
        return False
    # The folder is for people: a model that was moved is the same model.
    return replace(scores, model_dir=about.model_dir) == about


def read_scores(path: Path) -> tuple[About, pa.Table]:
    """A shard's scores, and what they are of.

    Raises:
        FileNotFoundError: There are none.
        BadFile: The file is damaged.
    """
    try:
        table = pq.read_table(path)
        about = About(**json.loads((table.schema.metadata or {})[_KEY]))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise BadFile(f"is damaged ({error}); predict this shard again", str(path)) from error
    return about, table
