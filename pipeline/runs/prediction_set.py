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
from catalog.storage.bounded_file import parsed_json, read_bounded, read_description

PREDICTIONS_FILE = "predictions.json"
MATCHED_FILE = "matched.parquet"

SCORES_FILE = "scores.json"
"""The description that framesift.data.Scores writes beside what is added to it."""

_SCORES_FORMAT = 1

IDS, LABELS = "ids", "labels"
"""Encodings without a class list of their own: class ids, or as the dataset's labels."""

BY_NAME, BY_FKEY = "name", "fkey"
"""Names of predictions: the camera image's below its source, or the frame's fkey."""

MOST_NAMED = 100
"""Predictions of a kind that are named; all are counted."""

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LAYOUT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
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
    """Folder, or uncompressed tar archive, that they lie in: a path, or a URI of a server."""
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
    options: Mapping[str, Any] = field(default_factory=dict)
    """How a place on this machine is opened, as JSON of ingest.sources.source_options."""
    fetched: str = ""
    """Folder that the job brought them to, of a place on a server; empty for any other."""
    list_within: str = ""
    """Folder that the list of names must lie below, links followed; empty for anywhere."""

    @property
    def opened(self) -> str:
        """The place on this machine that they are read at."""
        return self.fetched or self.place

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
        return read_description(
            folder / PREDICTIONS_FILE,
            _MOST_BYTES,
            lambda data: cls(**(data | {"classes": tuple(data["classes"])})),
        )


def prediction_name(name: str) -> str:
    """The name of the prediction of an image, or of a frame: that with the ending ``.png``.

    >>> prediction_name("20260311/front/000.jpg"), prediction_name("drive.7")
    ('20260311/front/000.png', 'drive.7.png')
    """
    path = PurePosixPath(name)
    return str(path.with_suffix(".png")) if path.suffix.lower() in _IMAGES else f"{name}.png"


def confidence_names(name: str) -> tuple[str, str]:
    """Names of what says how sure a prediction is: its probabilities, or those of the best class.

    >>> confidence_names("front/000.png")
    ('front/000.npz', 'front/000.confidence.png')
    """
    path = PurePosixPath(name)
    return str(path.with_suffix(".npz")), str(path.with_suffix(".confidence.png"))


def named_by_in(text: str) -> str:
    """Names of predictions by a word, or the absolute path of their list."""
    return text if text in (BY_NAME, BY_FKEY) else str(Path(text).absolute())


def job_or_folder(text: str) -> str:
    """The absolute path of a folder that is there, or a job's name as it is."""
    path = Path(text)
    return str(path.absolute()) if path.is_dir() or "/" in text else text


def scores_in(folder: Path) -> Path:
    """The folder of the scores of a job, by the job's folder; any other folder as it is."""
    return folder / "scores" if (folder / "request.json").is_file() else folder


def written_scores(folder: Path) -> tuple[str, ...]:
    """Names of the classes of the scores that framesift.data.Scores wrote to a folder.

    Raises:
        InvalidInput: It wrote none there.
        BadFile: Their description is damaged.
    """
    path = folder / SCORES_FILE
    if not path.is_file():
        raise InvalidInput(
            f"scores {folder}: has no {SCORES_FILE}; expected the job of a program that adds to "
            "framesift.data.Scores, or the folder that this wrote"
        )
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
        number, classes = data["format"], tuple(str(name) for name in data["classes"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadFile(f"is damaged: {error}", str(path)) from error
    if number != _SCORES_FORMAT:
        raise BadFile(f"has format {number}; this version reads {_SCORES_FORMAT}", str(path))
    return classes


def is_on_server(place: str) -> bool:
    """Whether predictions lie on a server, from which a step of their job fetches them."""
    return place.lower().startswith("s3://")


def place_in(text: str) -> str:
    """A place of predictions, its path absolute."""
    return text if "://" in text else str(Path(text).absolute())


def check_place(place: str) -> None:
    """Accept a place that every process of a job can read.

    Raises:
        InvalidInput: It is none.
    """
    if not is_on_server(place) and ("://" in place or not Path(place).is_absolute()):
        raise InvalidInput(
            f"predictions {place}: expected a folder or an uncompressed .tar: an absolute path, "
            "which the machines that run the job can read, or s3://bucket/prefix"
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
        InvalidInput: It is no word.
    """
    if isinstance(encoding, str) and not _LAYOUT.fullmatch(encoding):
        raise InvalidInput(
            f"encoding {encoding[:80]!a}: expected {IDS}, {LABELS}, the name of a layout, or a "
            "class list with encoding and classes"
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
    """The class list of a JSON or TOML file, or else the word that names an encoding.

    Raises:
        InvalidInput: It is no word, and no such file.
        BadFile: The file cannot be read.
    """
    path = Path(text)
    if text in (IDS, LABELS) or (_LAYOUT.fullmatch(text) and not path.is_file()):
        return text
    if not path.is_file():
        raise InvalidInput(
            f"--encoding {text}: expected {IDS}, {LABELS}, the name of a layout (framesift layout "
            "list), or a file: a class_list.json, or a layout with encoding and classes"
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
