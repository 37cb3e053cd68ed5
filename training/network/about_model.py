"""A model's ``model.json``, which may be somebody else's and is believed in nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, InvalidInput, NotFound
from catalog.storage.bounded_file import parsed_json
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from pipeline.runs.class_map import ClassMap
from pipeline.runs.size import LONGEST_SIDE_PX
from pipeline.runs.training_input import SIZE_STEP_PX
from training.folder_file import read_folder_file

ABOUT_FILE = "model.json"

FORMAT = 4
_MOST_BYTES = 4 << 20
_MOST_KEYS = 4096
_LONGEST_NAME = 128


@dataclass(frozen=True)
class AboutModel:
    """The description of a finished model."""

    sha256: str
    """Digest of the file with its weights: the model's identity."""
    network: str
    """Name of its network."""
    step: int
    """Steps it was trained for."""
    classes: tuple[str, ...]
    """Names; a class id is a position in this list."""
    labels: DatasetClasses
    """Classes of the labels; ``class_list`` and, of several, ``class_lists`` of model.json."""
    height_px: int
    """Network input, pixels."""
    width_px: int
    """Network input, pixels."""
    workers: int
    """That trained it."""
    dataset: Mapping[str, Any]
    """Name, version, id and split it was trained on."""
    settings: Mapping[str, Any]
    """Of its training run."""
    parent: Mapping[str, Any] | None = None
    """The model that the run began with, as training.run.parent.Parent; None for none."""
    class_map: Mapping[str, Any] | None = None
    """By which label classes are merged (pipeline.runs.class_map); None where each is a class."""
    format: int = FORMAT
    """Of the model's files."""

    @classmethod
    def read(cls, model_dir: Path) -> "AboutModel":
        """The description of the model in ``model_dir``.

        Raises:
            NotFound: There is no finished model.
            BadFile: model.json is damaged, or of another format.
        """
        path = model_dir / ABOUT_FILE
        if not path.exists():
            hint = "train one with --exec_mode train"
            if (model_dir / CHECKPOINT_FILE).exists():
                hint = "its training did not finish; start it again and it goes on"
            raise NotFound("model", str(model_dir), hint)
        content = read_folder_file(model_dir, ABOUT_FILE, _MOST_BYTES)
        try:
            return _checked(parsed_json(content))
        except (ValueError, InvalidInput) as error:
            raise BadFile(f"is damaged: {error}", str(path)) from error

    def check(self) -> None:
        """Accept what a run would write, before it begins; its digest is not known yet.

        Raises:
            InvalidInput: `read` would not, because a name is too long or has control characters.
        """
        try:
            _checked(self.to_json() | {"sha256": "0" * 64, "classes": list(self.classes)})
        except ValueError as error:
            raise InvalidInput(f"a model cannot be made of this dataset: {error}") from error

    @property
    def digest(self) -> str:
        """Of what was predicted before; empty, as the model itself predicts."""
        return ""

    def lineage(self) -> dict[str, Any]:
        """What a report says of the model."""
        return {
            "network": self.network,
            "input": [self.width_px, self.height_px],
            "trained_on": dict(self.dataset),
            "continued_from": self.parent,
        }

    def to_json(self) -> dict[str, Any]:
        """The content of model.json."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        del content["labels"]
        return content | self.labels.to_json()

    def label_classes(self, labels: DatasetClasses, dataset: str) -> LabelClasses:
        """The model's classes, and where the labels of a dataset that it is run on go."""
        map_ = None if self.class_map is None else ClassMap.from_json(self.class_map)
        classes = LabelClasses.of(labels, map_, dataset)
        check_same_classes("the model", self.classes, classes.names, dataset)
        return classes


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
            f"differ in {', '.join(odd)}: train on a dataset with the same class list, or with the "
            "same --classes"
        )


def _checked(data: Any) -> AboutModel:
    """A model.json's content, every part of the kind and size that it may have.

    Raises:
        ValueError, InvalidInput: It is not.
    """
    if not isinstance(data, dict):
        raise ValueError("expected a JSON object")  # noqa: TRY004 (as for all that it may be)
    written = data.get("format", "none")
    if type(written) is not int or written != FORMAT:
        raise ValueError(f"format {str(written)[:20]}; this version reads {FORMAT}")
    known = [*({field.name for field in fields(AboutModel)} - {"labels"}), "class_list"]
    if odd := sorted((data.keys() - {"class_lists"}) ^ set(known)):
        raise ValueError(f"'{odd[0][:40]}' is {'missing' if odd[0] in known else 'unknown'}")
    for name in ("step", "workers"):
        _check(name, data[name], type(data[name]) is int and 1 <= data[name] < 2**63)
    for name in ("height_px", "width_px"):
        side = data[name]
        fits = type(side) is int and 1 <= side <= LONGEST_SIDE_PX and not side % SIZE_STEP_PX
        _check(name, side, fits)
    digest = data["sha256"]
    _check("sha256", digest, _is_name(digest) and re.fullmatch("[0-9a-f]{64}", digest) is not None)
    _check("network", data["network"], _is_name(data["network"]))
    for name in ("class_list", "dataset", "settings"):
        _check(name, data[name], isinstance(data[name], dict))
    for name in ("name", "id", "split"):
        _check(f"dataset.{name}", data["dataset"].get(name), _is_name(data["dataset"].get(name)))
    _check("parent", data["parent"], isinstance(data["parent"], dict | None))
    _check("class_map", data["class_map"], isinstance(data["class_map"], dict | None))
    lists = data.get("class_lists", [])
    _check("class_lists", lists, isinstance(lists, list) and all(map(_is_of_sources, lists)))
    labels = DatasetClasses.from_json(data)
    rest = {
        name: value for name, value in data.items() if name not in ("class_list", "class_lists")
    }
    return AboutModel(**(rest | {"classes": _classes(data, labels), "labels": labels}))


def _classes(data: Mapping[str, Any], labels: DatasetClasses) -> tuple[str, ...]:
    classes = data["classes"]
    _check("classes", classes, isinstance(classes, list) and all(map(_is_name, classes)))
    for each in labels.lists:
        _check("class_list", each.classes, len(each.keys) <= _MOST_KEYS)
    map_ = None if data["class_map"] is None else ClassMap.from_json(data["class_map"])
    if LabelClasses.of(labels, map_, data["dataset"]["name"]).names != tuple(classes):
        raise ValueError(f"classes: are not the {'class_list' if map_ is None else 'class_map'}'s")
    return tuple(classes)


def _is_of_sources(value: Any) -> bool:
    """True of a class list with the names of its sources."""
    sources = value.get("sources") if isinstance(value, dict) else None
    return isinstance(sources, list) and all(map(_is_name, sources))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable()


def _check(name: str, value: Any, fits: bool) -> None:
    if not fits:
        raise ValueError(f"{name}: {ascii(value)[:60]} cannot be")
