"""Pictures of what the model sees: one class-coloured PNG per frame."""

from pathlib import PurePosixPath

from PIL import Image

from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_path, clear_parts
from pipeline.cores import threads_of_process
from training.command import say
from training.input.dataset import open_reader, open_split
from training.network.model_files import read_model
from training.network.predictor import Predictor
from training.run.workers import use_threads
from training.run_settings import RunSettings


def predict(settings: RunSettings) -> None:
    """Write a prediction for each frame of one shard to ``results_dir``.

    The PNG has the image's size, the class list's colours and, below ``results_dir``, the label's
    path, so that it can be laid over the label or read as one; the image's where there is no label.

    Raises:
        NotFound: There is no finished model.
        BadFile: The manifest, the model or an image cannot be used.
        InvalidInput: Model and dataset have different classes.
        StorageError: The disk refuses.
    """
    if settings.results_dir is None:
        raise InvalidInput("predict needs --results_dir")
    use_threads(threads_of_process(settings.threads, 1))
    split, _, palette = open_split(settings.manifest, settings.split, "validation")
    model, about = read_model(settings.model_dir, trust_model=settings.trust_model)
    about.check_classes(split.header.classes, split.header.name)
    frames = split.shard(settings.shard, settings.shards)
    reader, _ = open_reader(frames, palette, about.height_px, about.width_px)
    predictor = Predictor(model)
    keys = (frames.frames[name].to_pylist() for name in ("label", "image"))
    clear_parts(settings.results_dir.rglob("*.part"))
    for row, (label, image_key) in enumerate(zip(*keys, strict=True)):
        name = label or image_key
        image, (height_px, width_px) = reader.image(row)
        ids = predictor.predict(image).class_ids(height_px, width_px)
        picture = Image.fromarray(palette.class_colours[ids])
        inside = [part for part in PurePosixPath(name).parts if part not in ("/", "..")]
        path = settings.results_dir.joinpath(*inside)
        with atomic_path(path, parents=True, clear=False) as part:
            picture.save(part, format="PNG")
        say(f"frame {row + 1}/{len(frames)} {name}")
