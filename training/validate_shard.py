"""One shard of a split through the model: its confusion matrix and the scores of its frames."""

import gc
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from ingest.labels.numbered_colours import NumberedColours
from pipeline.cache.reading import Reading, ReadsThrough
from pipeline.cores import threads_of_process
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.prediction_set import PredictionSet
from training.input.dataset import open_split
from training.input.frame_reader import Frame, LabelledFrame
from training.input.given_predictions import PredictionDecoder, PredictionFiles, read_match
from training.input.split_shards import FrameId, Split
from training.library_pages import drop_library_pages
from training.network.about_model import AboutModel
from training.network.about_onnx import AboutOnnx
from training.network.frame_prediction import (
    AboutPredictions,
    FramePrediction,
    GivenClasses,
    GivenPrediction,
)
from training.network.open_network import open_network, read_network
from training.run_settings import RunSettings
from training.validation.shard_file import About, compared_results
from training.validation.shard_pieces import remove_pieces
from training.validation.shard_work import Model, Scorer, ShardWork, has_result


def validate_shard(settings: RunSettings) -> None:
    """Validate the model in ``model_dir`` on one shard and write its result to ``results_dir``.

    The prediction is compared with the label at the label's own size. A shard without frames
    (more shards than frames) is written too, with zeros. A result that is there whole, of the same
    model and frames, is kept: a validation that was ended goes on with what it lacks. The
    model in ``compare_dir`` is validated on the same frames, which are read once for both.
    Afterwards this process scores pieces of shards whose workers are late.

    Raises:
        InvalidInput: Model and dataset have different classes, or frames have no label.
    """
    if settings.results_dir is None:
        raise InvalidInput("evaluate needs --results_dir")
    through = ReadsThrough.at(settings.manifest, settings.staging)
    frames, name, classes = open_split(through.manifest, settings.split, "validation")
    numbered = NumberedColours.of(classes)
    split = Split(frames.need_labels(), name, classes, numbered, settings.shards)
    shard = split.shard(settings.shard)
    models = [_model(settings, split, settings.model_dir, settings.model, settings.results_dir)]
    if settings.compare_dir is not None:
        results, network = compared_results(settings.results_dir), settings.compare_network
        models.append(_model(settings, split, settings.compare_dir, network, results))
    with through:
        through.begin(Reading(settings.shard, settings.shards, 1, 0, len(frames)))
        lacking = [model for model in models if not has_result(settings, model, shard)]
        if not lacking:
            for model in models:  # of a worker that ended between the two
                remove_pieces(model.results, shard.number, split.shards)
            return
        if any(isinstance(model.description, AboutModel) for model in lacking):
            drop_library_pages()  # those of Arrow, or they count beside TensorFlow's: 115 MiB
            from training.run.workers import use_threads  # with TensorFlow, which takes seconds

            drop_library_pages()
            use_threads(threads_of_process(settings.threads, 1))
        scorers = [_scorer(settings, model, split) for model in lacking]
        gc.freeze()  # TensorFlow stays: looking through it for garbage takes 0.15 s each time
        drop_library_pages()
        work = ShardWork(settings, scorers, through)
        work.finish(shard)
        if lacking == models:  # else it cannot do what other shards may lack
            for number in range(settings.shard + 1, settings.shard + settings.shards):
                work.help(split, number % settings.shards)


def _model(settings: RunSettings, split: Split, folder: Path, network: str, results: Path) -> Model:
    predictions = PredictionSet.read(folder)
    description: AboutModel | AboutOnnx | AboutPredictions
    if predictions is None:
        description = read_network(folder)
    else:
        description = AboutPredictions(predictions, read_match(folder))
    classes = description.label_classes(split.classes, split.frames.header.name)
    about = _about(split, description, classes, folder, settings)
    return Model(folder, network, results, about, description)


def _scorer(settings: RunSettings, model: Model, split: Split) -> Scorer:
    if isinstance(model.description, AboutPredictions):
        return _given(model, model.description, split)
    predict = open_network(
        model.folder,
        model.description,
        threads=threads_of_process(settings.threads, 1),
        trust_model=settings.trust_model,
        network=model.network,
        mirrors=settings.augment_test == "mirror",
    )
    classes = model.description.label_classes(split.classes, split.frames.header.name)
    is_compared = model.results != settings.results_dir
    return Scorer(
        model, lambda _, frame: predict(frame.image), classes, keeps_small=not is_compared
    )


def _given(model: Model, about: AboutPredictions, split: Split) -> Scorer:
    """The scorer of predictions that another program made."""
    name, predictions = split.frames.header.name, about.predictions
    classes = about.label_classes(split.classes, name)
    decoder = PredictionDecoder(predictions, classes, split.classes, name)
    files = PredictionFiles(model.folder, predictions, decoder)

    def predict(frame_id: FrameId, frame: Frame | LabelledFrame) -> FramePrediction:
        ids = files.ids(frame_id.row, frame.label)
        sure = files.confidence(frame_id.row, ids, frame.size)
        return GivenPrediction(GivenClasses(ids, frame.size), sure, decoder.layer_of)

    return Scorer(model, predict, classes, needs_image=False)


def _about(
    split: Split,
    model: AboutModel | AboutOnnx | AboutPredictions,
    classes: LabelClasses,
    folder: Path,
    settings: RunSettings,
) -> About:
    header = split.frames.header
    lineage: dict[str, Any] = {
        "question": dict(header.question),
        "snapshot": header.snapshot,
        "seed": header.seed,
        "parents": [dict(parent) for parent in header.parents],
        **model.lineage(),
    }
    return About(
        model_sha256=model.sha256,
        model_dir=str(folder.resolve()),
        step=model.step,
        classes=model.classes,
        tags=classes.tags,
        label_tags=classes.label_tags,
        class_map=model.class_map,
        dataset=header.name,
        version=header.version,
        dataset_id=header.id,
        split=split.name,
        split_frames=len(split.frames),
        shard=settings.shard,
        shards=settings.shards,
        lineage=lineage,
        augment_test=settings.augment_test,
        predictions=model.digest,
    )
