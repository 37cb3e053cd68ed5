"""One shard of a split through the model: its confusion matrix and the scores of its frames."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.errors import BadFile, InvalidInput
from ingest.labels.palette import Palette
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.manifest import Manifest
from pipeline.runs.bad_frames import BadFrames
from training.command import say
from training.input.dataset import open_reader, open_split
from training.input.frame_reader import Frame, FrameReader
from training.input.label_classes import LabelClasses
from training.input.numbered_colours import NumberedColours
from training.input.trained_frames import frames_trained_on, scenes_trained_on
from training.network.about_model import AboutModel
from training.network.model_files import read_model
from training.run_settings import RunSettings
from training.validation.frame_cells import FrameCells
from training.validation.shard_file import (
    About,
    ShardResult,
    compared_results,
    open_shard,
    shard_path,
)
from training.validation.shard_sums import Place, ShardSums

if TYPE_CHECKING:
    from training.network.predictor import Predictor


@dataclass(frozen=True)
class _Shard:
    """The frames of a shard.

    Attributes:
        split: They are of it.
        name: The split's.
        palette: Of its labels.
        frames: They themselves.
        rows: Their positions in the split.
        numbered: The labels' colours, where some number objects.
    """

    split: Manifest
    name: str
    palette: Palette
    frames: Manifest
    rows: Sequence[int]
    numbered: NumberedColours | None


@dataclass(frozen=True)
class _Model:
    """A model that a shard's frames are put through.

    Attributes:
        folder: Its files.
        network: The user's own network, which may be built for it.
        results: Folder of the shard's result.
        about: What that is of.
        description: The model's.
    """

    folder: Path
    network: str
    results: Path
    about: About
    description: AboutModel


@dataclass(frozen=True)
class _Scoring:
    """A model that is being validated.

    Attributes:
        model: Which one.
        predictor: It, built.
        classes: Of it.
        reader: Of the frames, at its size and with its classes.
        sums: Over the frames so far.
    """

    model: _Model
    predictor: "Predictor"
    classes: LabelClasses
    reader: FrameReader
    sums: ShardSums


def validate_shard(settings: RunSettings) -> None:
    """Validate the model in ``model_dir`` on one shard and write its result to ``results_dir``.

    The prediction is compared with the label at the label's own size. A shard without frames
    (more shards than frames) is written too, with zeros. A result that is there whole, of the same
    model and frames, is kept: a validation that was ended goes on with the shards it lacks. The
    model in ``compare_dir`` is validated on the same frames, which are read once for both.

    Raises:
        NotFound: There is no finished model.
        BadFile: The manifest, a model, an image or a label cannot be used.
        InvalidInput: Model and dataset have different classes, or frames have no label.
        StorageError: The disk refuses.
    """
    if settings.results_dir is None:
        raise InvalidInput("evaluate needs --results_dir")
    through = ReadsThrough.at(settings.manifest, settings.staging)
    split, name, palette = open_split(through.manifest, settings.split, "validation")
    frames = split.need_labels().shard(settings.shard, settings.shards)
    rows = split.shard_rows(settings.shard, settings.shards).tolist()
    numbered = NumberedColours.of(split.header.class_list)
    shard = _Shard(split, name, palette, frames, rows, numbered)
    models = [_model(settings, shard, settings.model_dir, settings.model, settings.results_dir)]
    if settings.compare_dir is not None:
        results, network = compared_results(settings.results_dir), settings.compare_network
        models.append(_model(settings, shard, settings.compare_dir, network, results))
    with through:
        through.begin(Reading(settings.shard, settings.shards, 1, 0, len(split)))
        _validate_shard(settings, shard, models, through)


def _validate_shard(
    settings: RunSettings, shard: _Shard, models: Sequence[_Model], through: ReadsThrough
) -> None:
    skips = BadFrames.parse(settings.bad_frames).skips
    lacking = []
    for model in models:
        if _is_there(model.about, len(shard.frames), skips, model.results):
            of = "" if model is models[0] else f" of {model.folder}"
            say(f"shard {settings.shard} of {settings.shards}{of} is there already")
        else:
            lacking.append(model)
    if not lacking:
        return
    from training.run.workers import use_threads  # with TensorFlow, which takes seconds

    use_threads(threads_of_process(settings.threads, 1))
    readers: dict[str, FrameReader] = {}
    scorings = [_scoring(settings, shard, model, readers, through.wait_for) for model in lacking]
    _validate(settings, shard, scorings, through)
    for scoring in scorings:
        path = _result(shard, scoring).write(scoring.model.results)
        say(f"shard {settings.shard} of {settings.shards} written to {path}")


def _model(
    settings: RunSettings, shard: _Shard, folder: Path, network: str, results: Path
) -> _Model:
    description = AboutModel.read(folder)
    about = _about(shard, description, folder, settings)
    return _Model(folder, network, results, about, description)


def _is_there(about: About, frames: int, skips: bool, results_dir: Path) -> bool:
    """True where a whole result of this very shard is on disk."""
    try:
        result, _ = open_shard(shard_path(results_dir, about.shard, about.shards))
    except (FileNotFoundError, BadFile):
        return False
    # The folder is for people: a model that was moved is the same model.
    return (
        replace(result.about, model_dir=about.model_dir, lineage=about.lineage) == about
        and result.number + (len(result.skipped) if skips else 0) == frames
    )


def _scoring(
    settings: RunSettings,
    shard: _Shard,
    model: _Model,
    readers: dict[str, FrameReader],
    wait_for: Callable[[str], bool],
) -> _Scoring:
    """A model, built, and its reader: the same where another reads the same size and classes."""
    from training.network.predictor import Predictor

    built, about = read_model(model.folder, trust_model=settings.trust_model, network=model.network)
    header = shard.split.header
    classes = about.label_classes(header.class_list, header.name)
    key = json.dumps([about.height_px, about.width_px, about.class_map])
    if key not in readers:
        readers[key], prepared = open_reader(
            shard.frames,
            shard.palette,
            about.height_px,
            about.width_px,
            wait_for=wait_for,
            classes=classes,
            numbered=shard.numbered,
        )
        if prepared is not None:
            say(f"reading images from the prepared form {prepared.form.folder}")
    sums = ShardSums.empty(classes, shard.numbered)
    predictor = Predictor(built, mirrors=settings.augment_test == "mirror")
    return _Scoring(model, predictor, classes, readers[key], sums)


def _validate(
    settings: RunSettings, shard: _Shard, scorings: Sequence[_Scoring], through: ReadsThrough
) -> None:
    """Put the frames through the models; what cannot be read is left out for all of them."""
    bad, skipped = BadFrames.parse(settings.bad_frames), 0
    began_s = time.perf_counter()
    columns = (shard.frames.frames[name].to_pylist() for name in ("fkey", "scene", "camera"))
    places = [Place(*one) for one in zip(shard.rows, *columns, strict=True)]
    for index, place in enumerate(places):
        try:
            frames = _read(index, scorings)
        except BadFile as error:
            if not bad.skips:
                raise
            skipped += 1
            left_out = {"fkey": place.fkey, "row": place.row, "reason": str(error)}
            for scoring in scorings:
                scoring.sums.skipped.append(left_out)
            say(f"left out: {error}")
            bad.check(skipped, len(shard.split))
            continue
        finally:
            through.has_read(index)
        for scoring in scorings:
            frame = frames[scoring.reader]
            try:
                prediction = scoring.predictor.predict(frame.image)
            except BadFile as error:  # of the model, whatever is done with bad frames
                reason = f"{error.reason} for frame {place.fkey}"
                raise BadFile(reason, str(scoring.model.folder)) from error
            scoring.sums.add(place, frame, prediction, scoring.classes)
        done = index + 1
        if done % settings.log_every_steps == 0 or done == len(places):
            images_per_s = done / (time.perf_counter() - began_s)
            say(f"frame {done}/{len(places)} {images_per_s:.1f} images/s")


def _read(index: int, scorings: Sequence[_Scoring]) -> Mapping[FrameReader, Frame]:
    """A frame as each reader reads it.

    Raises:
        BadFile: It cannot be read.
    """
    return {reader: reader.frame(index) for reader in {one.reader: None for one in scorings}}


def _result(shard: _Shard, scoring: _Scoring) -> ShardResult:
    model, sums = scoring.model, scoring.sums
    trained = frames_trained_on(model.folder, model.description.dataset, shard.frames, shard.name)
    scenes = scenes_trained_on(model.folder)
    return ShardResult(
        model.about,
        sums.metrics,
        sums.frames,
        FrameCells.of(sums.cells),
        sum(one.fkey in trained for one in sums.frames),
        sum(one.scene in scenes and one.fkey not in trained for one in sums.frames),
        sums.skipped,
        sums.shown.pictures(),
    )


def _about(shard: _Shard, model: AboutModel, folder: Path, settings: RunSettings) -> About:
    header = shard.split.header
    lineage: dict[str, Any] = {
        "question": dict(header.question),
        "snapshot": header.snapshot,
        "seed": header.seed,
        "parents": [dict(parent) for parent in header.parents],
        "network": model.network,
        "input": [model.width_px, model.height_px],
        "trained_on": dict(model.dataset),
        "continued_from": model.parent,
    }
    return About(
        model_sha256=model.sha256,
        model_dir=str(folder.resolve()),
        step=model.step,
        classes=model.classes,
        class_map=model.class_map,
        dataset=header.name,
        version=header.version,
        dataset_id=header.id,
        split=shard.name,
        split_frames=len(shard.split),
        shard=settings.shard,
        shards=settings.shards,
        lineage=lineage,
        augment_test=settings.augment_test,
    )
