"""One shard of a split through the model: its confusion matrix and the scores of its frames."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from catalog.errors import BadFile, InvalidInput
from pipeline.cores import threads_of_process
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import nearest
from pipeline.prepared.size import Size
from training.command import say
from training.input.dataset import open_reader, open_split
from training.input.frame_reader import FrameReader
from training.input.trained_frames import frames_trained_on
from training.network.about_model import AboutModel
from training.network.model_files import read_model
from training.network.predictor import Predictor
from training.run.workers import use_threads
from training.run_settings import RunSettings
from training.validation.scores import Int64, confusion_matrix, mean_iou, pixel_accuracy
from training.validation.shard_file import About, FrameScore, ShardResult, read_shard, shard_path


@dataclass
class Sums:
    """What adds up over the frames of a shard."""

    matrix: Int64
    frames_with_class: Int64
    frames: list[FrameScore] = field(default_factory=list)


def validate_shard(settings: RunSettings) -> None:
    """Validate the model in ``model_dir`` on one shard and write its result to ``results_dir``.

    The prediction is compared with the label at the label's own size. A shard without frames
    (more shards than frames) is written too, with zeros. A result that is there whole, of the same
    model and frames, is kept: a validation that was ended goes on with the shards it lacks.

    Raises:
        NotFound: There is no finished model.
        BadFile: The manifest, the model, an image or a label cannot be used.
        InvalidInput: Model and dataset have different classes, or frames have no label.
        StorageError: The disk refuses.
    """
    if settings.results_dir is None:
        raise InvalidInput("evaluate needs --results_dir")
    use_threads(threads_of_process(settings.threads, 1))
    split, name, palette = open_split(settings.manifest, settings.split, "validation")
    about_model = AboutModel.read(settings.model_dir)
    about = _about(split, name, about_model, settings)
    frames = split.need_labels().shard(settings.shard, settings.shards)
    if _is_there(about, len(frames), settings.results_dir):
        say(f"shard {settings.shard} of {settings.shards} is there already")
        return
    model, about_model = read_model(settings.model_dir, trust_model=settings.trust_model)
    about_model.check_classes(split.header.classes, split.header.name)
    size = about_model.height_px, about_model.width_px
    reader, prepared = open_reader(frames, palette, *size)
    if prepared is not None:
        say(f"reading images from the prepared form {prepared.form.folder}")
    sums = _validate(frames, reader, Predictor(model), settings)
    trained = frames_trained_on(settings.model_dir, about_model.dataset, frames, name)
    about = _about(split, name, about_model, settings)
    path = ShardResult(about, sums.matrix, sums.frames_with_class, sums.frames, len(trained)).write(
        settings.results_dir
    )
    say(f"shard {settings.shard} of {settings.shards} written to {path}")


def _is_there(about: About, frames: int, results_dir: Path) -> bool:
    """Whether a whole result of this very shard is on disk."""
    try:
        found = read_shard(shard_path(results_dir, about.shard, about.shards))
    except (FileNotFoundError, BadFile):
        return False
    # The folder is for people: a model that was moved is the same model.
    return replace(found.about, model_dir=about.model_dir) == about and len(found.frames) == frames


def _validate(
    frames: Manifest, reader: FrameReader, predictor: Predictor, settings: RunSettings
) -> Sums:
    n_classes = len(frames.header.classes)
    sums = Sums(np.zeros((n_classes, n_classes), np.int64), np.zeros(n_classes, np.int64))
    began_s = time.perf_counter()
    fkeys: Sequence[str] = frames.frames["fkey"].to_pylist()
    for row, fkey in enumerate(fkeys):
        frame = reader.frame(row)
        prediction = predictor.predict(frame.image)
        ids = prediction.class_ids(*frame.label.shape)
        matrix, ignored = confusion_matrix(frame.label, ids, n_classes)
        sums.matrix += matrix
        sums.frames_with_class += matrix.any(axis=1)
        pixels = int(matrix.sum())
        sums.frames.append(
            FrameScore(
                fkey=fkey,
                row=settings.shard + row * settings.shards,
                pixels=pixels,
                ignored_pixels=ignored,
                accuracy=pixel_accuracy(matrix) if pixels else None,
                loss=prediction.loss(nearest(frame.label, Size(*frame.image.shape[:2]))),
                uncertainty=prediction.uncertainty,
                miou=mean_iou(matrix) if pixels else None,
            )
        )
        done = row + 1
        if done % settings.log_every_steps == 0 or done == len(fkeys):
            images_per_s = done / (time.perf_counter() - began_s)
            say(f"frame {done}/{len(fkeys)} {images_per_s:.1f} images/s")
    return sums


def _about(split: Manifest, name: str, model: AboutModel, settings: RunSettings) -> About:
    header = split.header
    return About(
        model_sha256=model.sha256,
        model_dir=str(settings.model_dir.resolve()),
        step=model.step,
        classes=model.classes,
        dataset=header.name,
        version=header.version,
        dataset_id=header.id,
        split=name,
        split_frames=len(split),
        shard=settings.shard,
        shards=settings.shards,
    )
