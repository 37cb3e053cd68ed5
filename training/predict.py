"""Predict frames, with or without labels: a class-coloured PNG and scores of each."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_path, clear_parts
from ingest.labels.palette import Palette, tag_name
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.manifest import Manifest
from pipeline.runs.bad_frames import BadFrames
from training.command import say
from training.input.dataset import open_reader, open_split
from training.network.about_model import AboutModel
from training.network.model_files import read_model
from training.network.predictor import Predictor
from training.prediction_scores import BY_SIZE, About, is_written, schema_of, shard_scores
from training.run.workers import use_threads
from training.run_settings import RunSettings


def predict(settings: RunSettings) -> None:
    """Write a prediction for each frame of one shard to ``results_dir``, and their scores.

    The PNG has the image's size, the class list's colours (of merged classes, that of the first
    label class) and, below ``results_dir``, the label's path, so that it can be laid over the label
    or read as one; the image's where there is no label.
    Where a dataset is of several sources, the source's name comes before it. Scores that are there
    already, of the same model and frames, say that the shard is done.

    Raises:
        NotFound: There is no finished model.
        BadFile: The manifest, the model or an image cannot be used.
        InvalidInput: Model and dataset have different classes.
        StorageError: The disk refuses.
    """
    if settings.results_dir is None:
        raise InvalidInput("predict needs --results_dir")
    use_threads(threads_of_process(settings.threads, 1))
    through = ReadsThrough.at(settings.manifest, settings.staging)
    split, name, palette = open_split(through.manifest, settings.split, "validation")
    model = AboutModel.read(settings.model_dir)
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
    if is_written(scores, about):
        say(f"shard {settings.shard} of {settings.shards} is there already")
        return
    with through:
        through.begin(Reading(settings.shard, settings.shards, 1, 0, len(split)))
        rows = _predict(settings, settings.results_dir, split, palette, through)
    schema = schema_of([tag_name(each) for each in model.classes], about)
    with atomic_path(scores, parents=True, clear=False) as partial_path:
        pq.write_table(pa.Table.from_pylist(rows, schema), partial_path)
    say(f"shard {settings.shard} of {settings.shards} written to {scores}")


def _predict(
    settings: RunSettings,
    results_dir: Path,
    split: Manifest,
    palette: Palette,
    through: ReadsThrough,
) -> list[Mapping[str, Any]]:
    """Write the pictures of a shard; the scores of its frames."""
    model, about = read_model(
        settings.model_dir, trust_model=settings.trust_model, network=settings.model
    )
    classes = about.label_classes(split.header.class_list, split.header.name)
    frames = split.shard(settings.shard, settings.shards)
    numbers = split.shard_rows(settings.shard, settings.shards).tolist()
    size = about.height_px, about.width_px
    reader, _ = open_reader(frames, palette, *size, wait_for=through.wait_for)
    predictor = Predictor(model)
    tags = [tag_name(name) for name in classes.names]
    rows: list[Mapping[str, Any]] = []
    bad, left_out = BadFrames.parse(settings.bad_frames), 0
    for row, (fkey, picture) in enumerate(
        zip(frames.frames["fkey"].to_pylist(), _pictures(frames), strict=True)
    ):
        try:
            image, (height_px, width_px) = reader.image(row)
        except BadFile as error:
            if not bad.skips:
                raise
            left_out += 1
            say(f"left out: {fkey}: {error}")
            bad.check(left_out, len(split))
            continue
        finally:
            through.has_read(row)
        try:
            prediction = predictor.predict(image)
        except BadFile as error:  # of the model, whatever is done with bad frames
            reason = f"{error.reason} for frame {fkey}"
            raise BadFile(reason, str(settings.model_dir)) from error
        ids = prediction.best.at_size(height_px, width_px)
        coloured = Image.fromarray(classes.colours[ids])
        path = results_dir / picture
        if row == 0:
            clear_parts(path.parent.glob("*.part"))
        with atomic_path(path, parents=True, clear=False) as partial_path:
            coloured.save(partial_path, format="PNG")
        counts = np.bincount(ids.ravel(), minlength=len(tags))
        rows.append(
            {
                "fkey": fkey,
                "row": numbers[row],
                "picture": str(picture),
                "uncertainty": prediction.uncertainty,
                "margin": prediction.margin,
                **dict(zip(tags, counts.tolist(), strict=True)),
            }
        )
        say(f"frame {row + 1}/{len(frames)} {picture}")
    return rows


def _pictures(frames: Manifest) -> Sequence[Path]:
    """Where each frame's picture lies below the results."""
    several = len(frames.header.roots) > 1
    columns = ("label", "label_source", "image", "image_source")
    rows = zip(*(frames.frames[name].to_pylist() for name in columns), strict=True)
    pictures = []
    for label, label_source, image, image_source in rows:
        key, source = (label, label_source) if label else (image, image_source)
        inside = [segment for segment in PurePosixPath(key).parts if segment not in ("/", "..")]
        pictures.append(Path(*([source] if several else []), *inside))
    return pictures
