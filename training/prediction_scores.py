"""The scores of predicted frames on disk: a file for each shard, which says what it is of.

As long as a shard is not done, a file for each piece of it (training.validation.shard_pieces).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path
from pipeline.manifest import Manifest
from training.validation.shard_pieces import Piece, piece_path

_KEY = b"framesift"


@dataclass(frozen=True)
class About:
    """The identity of a shard's scores."""

    model_sha256: str
    """Digest of the model's weights' file."""
    model_dir: str
    """Where the model lay, for people."""
    dataset_id: str
    """The dataset's id."""
    split: str
    """The split predicted."""
    split_frames: int
    """Frames of the whole split."""
    shard: int
    """This shard, from 0."""
    shards: int
    """Number of shards."""
    dealt: str
    """How frames were dealt to shards: those of another release do not belong to these."""


BY_SIZE = "by size"
"""Name of the order in which pipeline.runs.shard_order deals frames to shards."""


def schema_of(tags: Sequence[str], about: About, *, has_ids_alone: bool = False) -> pa.Schema:
    """Columns of a shard's scores; of each class tag the pixels that were taken for it.

    Args:
        has_ids_alone: Whether the network says nothing of probabilities.
    """
    fields = [
        pa.field("fkey", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("picture", pa.string(), nullable=False),
        pa.field("uncertainty", pa.float64(), nullable=has_ids_alone),
        pa.field("margin", pa.float64(), nullable=has_ids_alone),
        *(pa.field(tag, pa.int32(), nullable=False) for tag in tags),
    ]
    return pa.schema(fields, {_KEY: json.dumps(asdict(about)).encode()})


def shard_scores(results_dir: Path, shard: int, shards: int) -> Path:
    """The file of a shard's scores."""
    return results_dir / f"scores-{shard:05d}-of-{shards:05d}.parquet"


def picture_paths(frames: Manifest) -> list[Path]:
    """Where each frame's picture, a PNG, lies below the results: as its label, or else its image.

    The name of a JPEG without a label gets .png behind it.
    """
    several = len(frames.header.roots) > 1
    columns = ("label", "label_source", "image", "image_source")
    rows = zip(*(frames.frames[name].to_pylist() for name in columns), strict=True)
    pictures = []
    for label, label_source, image, image_source in rows:
        key, source = (label, label_source) if label else (image, image_source)
        name = key if key.lower().endswith(".png") else f"{key}.png"
        inside = [segment for segment in PurePosixPath(name).parts if segment not in ("/", "..")]
        pictures.append(Path(*([source] if several else []), *inside))
    return pictures


def piece_scores(results_dir: Path, about: About, piece: Piece) -> Path:
    """The file of the scores of a piece of a shard."""
    path = piece_path(results_dir, about.shard, about.shards, piece)
    return path.with_suffix(".parquet")


def written_frames(path: Path, about: About) -> int | None:
    """Number of frames whose scores a file has; None where it is not there whole, of this shard."""
    try:
        scores, table = read_scores(path)
    except (FileNotFoundError, BadFile):
        return None
    # The folder is for people: a model that was moved is the same model.
    is_same = replace(scores, model_dir=about.model_dir) == about
    return int(table.num_rows) if is_same else None


def write_scores(path: Path, table: pa.Table) -> None:
    """Write the scores of a shard, or of a piece."""
    with atomic_path(path, parents=True, clear=False) as partial_path:
        pq.write_table(table, partial_path)


def read_about(path: Path) -> tuple[About, int]:
    """The model and dataset of a shard's scores, and the number of their frames."""
    with _reading(path):
        metadata = pq.read_metadata(path)
        return _about(metadata.metadata), metadata.num_rows


def read_scores(path: Path, rows: range | None = None) -> tuple[About, pa.Table]:
    """The scores of a shard or of a piece, and what they are of.

    Args:
        rows: Only frames whose rows in the split are these; all when None.
    """
    within = None if rows is None else [("row", ">=", rows.start), ("row", "<", rows.stop)]
    with _reading(path):
        table = pq.read_table(path, filters=within)
        return _about(table.schema.metadata), table


def _about(metadata: Mapping[bytes, bytes] | None) -> About:
    return About(**json.loads((metadata or {})[_KEY]))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Have whatever a damaged file leads to be a BadFile."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise BadFile(f"is damaged ({error}); predict this shard again", str(path)) from error
