"""The finished model on disk: ``model.keras`` and what it is, ``model.json``.

model.json is written last and names the digest of its model.keras: together they are a model,
anything else is not. Reading model.json needs no TensorFlow.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, InvalidInput, NotFound
from training.aside import write_aside, write_json_aside
from training.checkpoint import CHECKPOINT_FILE

MODEL_FILE = "model.keras"
ABOUT_FILE = "model.json"


@dataclass(frozen=True)
class AboutModel:
    """What a finished model is.

    Attributes:
        sha256: Digest of model.keras: the model's identity.
        step: Steps it was trained for.
        classes: Names; a class id is a position in this list.
        class_list: The labels' colours and class names.
        height_px: Network input, pixels.
        width_px: Network input, pixels.
        workers: That trained it.
        dataset: Name, version, id and split it was trained on.
        settings: Of its training run.
        parent: The model that the run began with, as training.parent.Parent; None for none.
    """

    sha256: str
    step: int
    classes: tuple[str, ...]
    class_list: Mapping[str, str]
    height_px: int
    width_px: int
    workers: int
    dataset: Mapping[str, Any]
    settings: Mapping[str, Any]
    parent: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, model_dir: Path) -> "AboutModel":
        """What the model in ``model_dir`` is.

        Raises:
            NotFound: There is no finished model.
            BadFile: model.json is damaged.
        """
        path = model_dir / ABOUT_FILE
        if not path.exists():
            hint = "train one with --exec_mode train"
            if (model_dir / CHECKPOINT_FILE).exists():
                hint = "its training did not finish; start it again and it goes on"
            raise NotFound("model", str(model_dir), hint)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(**(data | {"classes": tuple(data["classes"])}))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadFile(f"is damaged: {error}", str(path)) from error

    def check_classes(self, classes: tuple[str, ...], dataset: str) -> None:
        """Accept a dataset to run the model on.

        Raises:
            InvalidInput: Its classes are not the model's.
        """
        check_same_classes("the model", self.classes, classes, dataset)


def check_same_classes(
    model: str, known: tuple[str, ...], classes: tuple[str, ...], dataset: str
) -> None:
    """Accept a dataset whose classes are a model's, in the same order.

    Raises:
        InvalidInput: They are not.
    """
    if classes != known:
        odd = [*sorted(set(classes) ^ set(known))[:3]] or ["their order"]
        raise InvalidInput(
            f"{model} knows {len(known)} classes, dataset {dataset} has {len(classes)}; they "
            f"differ in {', '.join(odd)}: train on a dataset with the same class list"
        )


def write_model(model: Any, about: AboutModel, model_dir: Path) -> None:
    """Write a trained Keras model and what it is; ``about.sha256`` is filled in here.

    Raises:
        StorageError: The disk refuses.
    """
    # Keras insists on the suffix, so its own file is the one written aside.
    draft = model_dir / f"draft-{MODEL_FILE}"
    model_dir.mkdir(parents=True, exist_ok=True)
    model.save(draft)
    content = draft.read_bytes()
    draft.unlink()
    write_aside(model_dir / MODEL_FILE, lambda file: file.write(content))
    digest = hashlib.sha256(content).hexdigest()
    write_json_aside(model_dir / ABOUT_FILE, asdict(about) | {"sha256": digest})


def read_model(model_dir: Path) -> tuple[Any, AboutModel]:
    """The finished Keras model in ``model_dir``, and what it is.

    Raises:
        NotFound: There is none.
        BadFile: Its files are damaged or do not belong together.
    """
    import tensorflow as tf

    import training.model  # noqa: F401  (registers the network's own layer)

    about = AboutModel.read(model_dir)
    path = model_dir / MODEL_FILE
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadFile(f"{error.strerror}; train again", str(path)) from error
    if digest != about.sha256:
        raise BadFile(f"does not belong to the {ABOUT_FILE} beside it; train again", str(path))
    try:
        return tf.keras.models.load_model(path, compile=False), about
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadFile(f"cannot be loaded: {error}", str(path)) from error
