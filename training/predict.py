"""Predict frames, with or without labels: a class-coloured PNG and scores of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_path, clear_parts
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import UInt8
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.bad_frames import BadFrames
from pipeline.runs.onnx_model import IDS
from training.class_picture import class_picture
from training.command import say
from training.input.dataset import open_reader, open_split
from training.input.frame_reader import FrameReader
from training.library_pages import drop_library_pages
from training.network.about_model import AboutModel
from training.network.about_onnx import AboutOnnx
from training.network.frame_prediction import FramePrediction
from training.network.open_network import open_network, read_network
from training.prediction_scores import (
    BY_SIZE,
    About,
    picture_paths,
    piece_scores,
    read_scores,
    schema_of,
    shard_scores,
    write_scores,
    written_frames,
)
from training.run_settings import RunSettings
from training.validation.shard_pieces import ShardLocks, pieces_of, remove_pieces


def predict(settings: RunSettings) -> None:
    """Write a prediction for each frame of one shard to ``results_dir``, and their scores.

    The PNG has the image's size, the model's class ids as palette indices, the class list's colours
    as their palette (of merged classes, that of the first label class) and, below ``results_dir``,
    the label's path, so that it can be laid over the label; the image's where there is no label,
    with .png behind that of a JPEG.
    Where a dataset is of several sources, the source's name comes before it. Scores that are there
    already, of the same model and frames, say that the shard, or a piece of it, is done: a
    prediction that was ended goes on with the pieces that it lacks.

    Raises:
        InvalidInput: Model and dataset have different classes.
    """
    if settings.results_dir is None:
        raise InvalidInput("predict needs --results_dir")
    through = ReadsThrough.at(settings.manifest, settings.staging)
    split, name, classes = open_split(through.manifest, settings.split, "validation")
    model = read_network(settings.model_dir)
    if isinstance(model, AboutModel):
        drop_library_pages()  # as in training.validate_shard
        from training.run.workers import use_threads  # with TensorFlow, which takes seconds

        drop_library_pages()
        use_threads(threads_of_process(settings.threads, 1))
    about = About(
        model.sha256,
        str(settings.model_dir.resolve()),
        split.header.id,
        name,
        len(split),
        settings.shard,
        settings.shards,
        BY_SIZE,
    )
    scores = shard_scores(settings.results_dir, settings.shard, settings.shards)
    pieces = pieces_of(len(split.shard_rows(settings.shard, settings.shards)))
    with ShardLocks(settings.results_dir, settings.shard, settings.shards).worker():
        if written_frames(scores, about) is None:
            with through:
                through.begin(Reading(settings.shard, settings.shards, 1, 0, len(split)))
                _predict(settings, settings.results_dir, split, classes, through, about, model)
            paths = [piece_scores(settings.results_dir, about, piece) for piece in pieces]
            write_scores(scores, pa.concat_tables([read_scores(path)[1] for path in paths]))
            outcome = f"written to {scores}"
        else:
            outcome = "is there already"
        remove_pieces(settings.results_dir, settings.shard, settings.shards)
    say(f"shard {settings.shard} of {settings.shards} {outcome}")


@dataclass(frozen=True)
class _Shard:
    """The frames of a shard, and the model that predicts them."""

    frames: Manifest
    """They."""
    rows: Sequence[int]
    """Their rows in the split."""
    pictures: Sequence[Path]
    """Where each one's picture lies below the results."""
    reader: FrameReader
    """Reads their images at the model's size."""
    predict: Callable[[UInt8], FramePrediction]
    """The model."""
    classes: LabelClasses
    """Of it."""


def _predict(
    settings: RunSettings,
    results_dir: Path,
    split: Manifest,
    classes: DatasetClasses,
    through: ReadsThrough,
    about: About,
    model: AboutModel | AboutOnnx,
) -> None:
    """Write the pictures and scores of the pieces of a shard that are not there."""
    frames = split.shard(settings.shard, settings.shards)
    bad, left_out, lacking = BadFrames.parse(settings.bad_frames), 0, []
    for piece in pieces_of(len(frames)):
        number = piece.end - piece.begin
        written = written_frames(piece_scores(results_dir, about, piece), about)
        if written is None or (written < number and not bad.skips):
            lacking.append(piece)
            continue
        left_out += number - written
        for index in range(piece.begin, piece.end):
            through.has_read(index)
    if not lacking:
        return
    shard = _opened(settings, split, frames, classes, through, model)
    drop_library_pages()
    has_ids_alone = isinstance(model, AboutOnnx) and model.model.output.kind == IDS
    schema = schema_of(shard.classes.tags, about, has_ids_alone=has_ids_alone)
    if shard.pictures:  # none where there are more shards than frames
        clear_parts((results_dir / shard.pictures[lacking[0].begin]).parent.glob("*.part"))
    for piece in lacking:
        scores: list[Mapping[str, Any]] = []
        for index in range(piece.begin, piece.end):
            one = _frame(settings, results_dir, shard, index, through)
            if one is not None:
                scores.append(one)
                continue
            left_out += 1
            bad.check(left_out, len(split))
        path = piece_scores(results_dir, about, piece)
        write_scores(path, pa.Table.from_pylist(scores, schema))


def _opened(
    settings: RunSettings,
    split: Manifest,
    frames: Manifest,
    classes: DatasetClasses,
    through: ReadsThrough,
    about: AboutModel | AboutOnnx,
) -> _Shard:
    predict = open_network(
        settings.model_dir,
        about,
        threads=threads_of_process(settings.threads, 1),
        trust_model=settings.trust_model,
        network=settings.model,
    )
    size = about.height_px, about.width_px
    return _Shard(
        frames,
        split.shard_rows(settings.shard, settings.shards).tolist(),
        picture_paths(frames),
        open_reader(frames, classes, *size, wait_for=through.wait_for)[0],
        predict,
        about.label_classes(classes, split.header.name),
    )


def _frame(
    settings: RunSettings, results_dir: Path, shard: _Shard, index: int, through: ReadsThrough
) -> Mapping[str, Any] | None:
    """Write a frame's picture; its scores, or None where it cannot be read and may be left out."""
    fkey, picture = shard.frames.frames["fkey"][index].as_py(), shard.pictures[index]
    try:
        image, (height_px, width_px) = shard.reader.image(index)
    except BadFile as error:
        if not BadFrames.parse(settings.bad_frames).skips:
            raise
        say(f"left out: {fkey}: {error}")
        return None
    finally:
        through.has_read(index)
    try:
        prediction = shard.predict(image)
    except BadFile as error:  # of the model, whatever is done with bad frames
        reason = f"{error.reason} for frame {fkey}"
        raise BadFile(reason, error.file or str(settings.model_dir)) from error
    ids = prediction.best.at_size(height_px, width_px)
    with atomic_path(results_dir / picture, parents=True, clear=False) as partial_path:
        class_picture(ids, shard.classes.colours).save(partial_path, format="PNG")
    tags = shard.classes.tags
    counts = np.bincount(ids.ravel(), minlength=len(tags))
    say(f"frame {index + 1}/{len(shard.frames)} {picture}")
    return {
        "fkey": fkey,
        "row": shard.rows[index],
        "picture": str(picture),
        "uncertainty": prediction.uncertainty,
        "margin": prediction.margin,
        **dict(zip(tags, counts.tolist(), strict=True)),
    }
