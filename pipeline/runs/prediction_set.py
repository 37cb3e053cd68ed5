"""Predictions that another program made with its own model: ``predictions.json``. A leaf."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from catalog.errors import BadFile, InvalidInput
from catalog.storage.bounded_file import parsed_json, read_bounded

PREDICTIONS_FILE = "predictions.json"
MATCHED_FILE = "matched.parquet"

IDS, LABELS = "ids", "labels"
"""Encodings without a class list of their own: class ids, or as the dataset's labels."""

BY_NAME, BY_FKEY = "name", "fkey"
"""Names of predictions: the camera image's below its source, or the frame's fkey."""

MOST_NAMED = 100
"""Predictions of a kind that are named; all are counted."""

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_INFO_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_IMAGES = (".png", ".jpg", ".jpeg")
MOST_INFO, _LONGEST_INFO = 32, 512
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class PredictionSet:
    """Predictions of a model that only its own program can run, and how to read them."""

    model: str
    """The model's name."""
    place: str
    """Folder, or uncompressed tar archive, that they lie in."""
    classes: Sequence[str]
    """Names of the model's classes; a class id is a position in this list."""
    info: Mapping[str, str] = field(default_factory=dict)
    """What its user says of the model: version, commit, digest of its weights."""
    encoding: str | Mapping[str, Any] = IDS
    """IDS, LABELS, or a class list of their own, as JSON (ingest.labels.class_list)."""
    named_by: str = BY_NAME
    """BY_NAME, BY_FKEY, or the path of a CSV file: a frame and its prediction a line."""
    class_map: Mapping[str, Any] | None = None
    """By which the model merges label classes; None where each is a class."""

    @property
    def sha256(self) -> str:
        """The model's identity: digest of its name and of what its user says of it."""
        identity = json.dumps([self.model, sorted(self.info.items())])
        return hashlib.sha256(identity.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The content of predictions.json."""
        return asdict(self)

    @classmethod
    def read(cls, folder: Path) -> "PredictionSet | None":
        """The predictions that a folder describes; None where it describes none.

        Raises:
            BadFile: The description is damaged.
        """
        path = folder / PREDICTIONS_FILE
        if not path.exists():
            return None
        try:
            data = parsed_json(read_bounded(path, _MOST_BYTES))
            return cls(**(data | {"classes": tuple(data["classes"])}))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadFile(f"is damaged: {error}", str(path)) from error


def prediction_name(name: str) -> str:
    """The name of the prediction of an image, or of a frame: that with the ending ``.png``.

    >>> prediction_name("20260311/front/000.jpg"), prediction_name("drive.7")
    ('20260311/front/000.png', 'drive.7.png')
    """
    path = PurePosixPath(name)
    return str(path.with_suffix(".png")) if path.suffix.lower() in _IMAGES else f"{name}.png"


def named_by_in(text: str) -> str:
    """Names of predictions by a word, or the absolute path of their list."""
    return text if text in (BY_NAME, BY_FKEY) else str(Path(text).absolute())


def check_place(place: str) -> None:
    """Accept a place that every process of a job can read.

    Raises:
        InvalidInput: It is none.
    """
    if "://" in place or not Path(place).is_absolute():
        raise InvalidInput(
            f"predictions {place}: expected the absolute path of a folder or of an uncompressed "
            ".tar, which the machines that run the job can read"
        )


def check_named_by(text: str) -> None:
    """Accept names of predictions.

    Raises:
        InvalidInput: They are none.
    """
    if text not in (BY_NAME, BY_FKEY) and not Path(text).is_absolute():
        raise InvalidInput(
            f"named by {text}: expected {BY_NAME}, {BY_FKEY}, or the absolute path of a CSV file "
            "with the columns frame and prediction"
        )


def check_encoding(encoding: str | Mapping[str, Any]) -> None:
    """Accept an encoding, as far as its kind says.

    Raises:
        InvalidInput: It is a word of nothing.
    """
    if isinstance(encoding, str) and encoding not in (IDS, LABELS):
        raise InvalidInput(
            f"encoding {encoding}: expected {IDS}, {LABELS}, or a class list with encoding and "
            "classes"
        )
    if isinstance(encoding, Mapping) and encoding.get("encoding") == "panoptic":
        raise InvalidInput(
            "encoding panoptic: predictions have no JSON file that names the category of each "
            f"segment; write them as {IDS}, or as ids with a class list of their own"
        )


def check_model_name(name: str) -> None:
    """Accept a name for a model.

    Raises:
        InvalidInput: It is none.
    """
    if not _MODEL.fullmatch(name):
        raise InvalidInput(
            f"model name {name[:140]!a}: expected letters, digits, points, hyphens and "
            "underscores, 128 at most, the first a letter or digit"
        )


def info_in(text: str) -> dict[str, str]:
    """What NAME=VALUE,... says of a model.

    Raises:
        InvalidInput: It says nothing.
    """
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(sign and value for _, sign, value in pairs):
        raise InvalidInput(
            f"--model-info {text}: expected NAME=VALUE,... such as version=3,commit=4f2a91c"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def check_info(info: Mapping[str, str]) -> None:
    """Accept what is said of a model.

    Raises:
        InvalidInput: A name or value cannot be shown.
    """
    if len(info) > MOST_INFO:
        raise InvalidInput(f"model info: {len(info)} entries; at most {MOST_INFO} are kept")
    for name, value in info.items():
        if not _INFO_NAME.fullmatch(name) or not (value.isprintable() and value):
            raise InvalidInput(
                f"model info {name[:80]!a}: expected a name such as commit, and text on one line"
            )
        if len(value) > _LONGEST_INFO:
            raise InvalidInput(
                f"model info {name}: {len(value):,} characters; at most {_LONGEST_INFO} are kept"
            )


def encoding_in(text: str) -> str | dict[str, Any]:
    """The encoding that a word names, or the class list of a JSON or TOML file.

    Raises:
        InvalidInput: It is no word, and no such file.
        BadFile: The file cannot be read.
    """
    if text in (IDS, LABELS):
        return text
    path = Path(text)
    if not path.is_file():
        raise InvalidInput(
            f"--encoding {text}: expected {IDS}, {LABELS}, or a file: a class_list.json, or a "
            "layout with encoding and classes"
        )
    content = read_bounded(path, _MOST_BYTES)
    try:
        is_toml = path.suffix.lower() == ".toml"
        data = tomllib.loads(content.decode()) if is_toml else parsed_json(content)
    except ValueError as error:
        raise BadFile(f"is no class list: {error}", text) from error
    if not isinstance(data, dict):
        raise BadFile("is no class list: expected an object of colours, or a layout", text)
    if isinstance(data.get("classes"), list):
        return {"encoding": data.get("encoding"), "classes": data["classes"]}
    rows = [{"key": colour, "name": name} for colour, name in data.items()]
    return {"encoding": "colour", "classes": rows}
