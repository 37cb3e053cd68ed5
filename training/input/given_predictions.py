"""Predictions that another program made, matched with a split's frames and read one by one."""

import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_path
from catalog.storage.beneath import open_beneath, real_path
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.label_image import decode_keys
from ingest.sources.schemes import open_reader, open_source
from ingest.sources.source_options import SourceOptions
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import UInt8
from pipeline.prepared.label_classes import LabelClasses
from pipeline.prepared.prediction_classes import PredictionClasses
from pipeline.runs.prediction_set import (
    BY_FKEY,
    BY_NAME,
    MATCHED_FILE,
    MOST_NAMED,
    PredictionSet,
    confidence_names,
    prediction_name,
)
from pipeline.runs.size import Size
from training.input.confidence import (
    Confidence,
    decoded_confidence,
    decoded_probabilities,
)

_SCHEMA = pa.schema(
    [
        ("fkey", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("start", pa.int64()),
        ("length", pa.int64()),
        ("confidence", pa.string()),  # the key of what says how sure the prediction is
        ("confidence_size", pa.int64()),
        ("confidence_start", pa.int64()),
        ("confidence_length", pa.int64()),
    ]
)
_ABOUT = b"framesift"
_LISTED = ["frame", "prediction"]
_MOST_KEYS_SHOWN = 3
_T = TypeVar("_T")


class BadPrediction(BadFile):
    """A prediction that cannot be compared with its frame's label."""


@dataclass(frozen=True)
class Match:
    """The predictions of a split's frames, as a listing had them."""

    digest: str
    """Of names, sizes and times of the predictions that are there."""
    frames: int
    """Frames of the split."""
    missing: int
    """Those without a prediction."""
    extra: int
    """Predictions of no frame of the dataset."""
    extra_names: Sequence[str]
    """The first MOST_NAMED of these."""
    confident: int
    """Predictions with probabilities, or those of the best class, beside them."""


def match_predictions(
    predictions: PredictionSet, manifest: Manifest, split: str, folder: Path
) -> Match:
    """Find the predictions of a split's frames, and write which is whose to ``folder``.

    Args:
        predictions: The predictions.
        manifest: The dataset, with all its splits.
        split: The split's name.
        folder: Of predictions.json.

    Raises:
        InvalidInput: No prediction is of a frame of the split, or two frames have the same name.
        StorageError: The place is not there.
    """
    frames = manifest.split(split)
    files = open_source(predictions.opened, SourceOptions.from_json(predictions.options))
    listed = {file.key: file for file in files.list()}
    keys = _keys_of(frames, predictions, listed)
    there = [key for key in keys if key in listed]
    known = {*there, *_keys_of(manifest, predictions, listed)} - {""}
    confidence_of = {key: name for key in known if (name := _beside(key, listed, known))}
    names_used = known.union(*map(confidence_names, known))
    extra = sorted(key for key in listed if key.lower().endswith(".png") and key not in names_used)
    if not there:
        present = f", and found {extra[0]}" if extra else ""
        raise InvalidInput(
            f"predictions {predictions.place}: none of its {len(listed):,} files is named as a "
            f"frame of {manifest.header.name}@{manifest.header.version}, split {split}: expected "
            f"names such as {keys[0]}{present}; "
            + (_otherwise_named(frames, predictions, listed) or "they may be another dataset's")
        )
    confident = [confidence_of[key] for key in there if key in confidence_of]
    spans = files.spans([*there, *confident])
    rows = [
        {
            "fkey": fkey,
            "key": key if key in listed else None,
            "size": listed[key].size if key in listed else None,
            "start": spans[key][0] if key in spans else None,
            "length": spans[key][1] if key in spans else None,
            "confidence": name,
            "confidence_size": listed[name].size if name in listed else None,
            "confidence_start": spans[name][0] if name in spans else None,
            "confidence_length": spans[name][1] if name in spans else None,
        }
        for fkey, key, name in (
            (fkey, key, confidence_of.get(key) if key in listed else None)
            for fkey, key in zip(frames.frames["fkey"].to_pylist(), keys, strict=True)
        )
    ]
    digest = hashlib.sha256()
    for key in (*there, *confident):
        digest.update(f"{key}\n{listed[key].size} {listed[key].mtime.isoformat()}\n".encode())
    match = Match(
        digest.hexdigest(),
        len(keys),
        len(keys) - len(there),
        len(extra),
        extra[:MOST_NAMED],
        len(confident),
    )
    table = pa.Table.from_pylist(rows, _SCHEMA)
    table = table.replace_schema_metadata({_ABOUT: json.dumps(asdict(match)).encode()})
    with atomic_path(folder / MATCHED_FILE) as partial_path:
        pq.write_table(table, partial_path, compression="zstd")
    return match


def _otherwise_named(
    frames: Manifest, predictions: PredictionSet, listed: Mapping[str, Any]
) -> str:
    """What to do about predictions that have the frames' names of the other kind; else empty."""
    other = {BY_NAME: BY_FKEY, BY_FKEY: BY_NAME}.get(predictions.named_by)
    if other is None:
        return ""
    with suppress(InvalidInput):
        keys = _keys_of(frames, replace(predictions, named_by=other), listed)
        if any(key in listed for key in keys):
            return f"they are named by {other}: give --named-by {other} (REST: named_by)"
    return ""


def _beside(key: str, listed: Mapping[str, Any], known: Collection[str]) -> str | None:
    """The file beside a prediction that says how sure it is: probabilities before those of one."""
    names = (name for name in confidence_names(key) if name in listed and name not in known)
    return next(names, None)


def _keys_of(frames: Manifest, predictions: PredictionSet, listed: Mapping[str, Any]) -> list[str]:
    """The key that the prediction of each frame has, below the place.

    Raises:
        InvalidInput: Two frames would have the same one.
    """
    columns = (frames.frames[name].to_pylist() for name in ("fkey", "image_source", "image"))
    rows = list(zip(*columns, strict=True))
    if predictions.named_by == BY_FKEY:
        keys = [prediction_name(fkey) for fkey, _, _ in rows]
        _check_once({fkey: key for (fkey, _, _), key in zip(rows, keys, strict=True)}, listed)
        return keys
    if predictions.named_by != BY_NAME:
        of_frame = _listed_names(Path(predictions.named_by), predictions.list_within)
        return [
            of_frame.get(fkey) or of_frame.get(image, "")  # a frame that is not listed has none
            for fkey, _, image in rows
        ]
    names = [prediction_name(image) for _, _, image in rows]
    in_source = [f"{source}/{name}" for (_, source, _), name in zip(rows, names, strict=True)]
    keys = [
        longer if longer in listed else name for longer, name in zip(in_source, names, strict=True)
    ]
    images = {(source, image): key for (_, source, image), key in zip(rows, keys, strict=True)}
    for key, times in Counter(images.values()).items():
        if times > 1 and key in listed:
            first = in_source[keys.index(key)]
            raise InvalidInput(
                f"predictions {predictions.place}: {key} is the name of {times} images: expected a "
                f"folder for each source, such as {first}, or a list (--named-by FILE)"
            )
    return keys


def _check_once(key_of: Mapping[str, str], listed: Mapping[str, Any]) -> None:
    """Accept fkeys that name a prediction each.

    Raises:
        InvalidInput: Two name the same one.
    """
    for key, times in Counter(key_of.values()).items():
        if times > 1 and key in listed:
            both = [fkey for fkey, of in key_of.items() if of == key][:2]
            raise InvalidInput(
                f"predictions: {key} is the name of frames {' and '.join(both)}: expected a list "
                "(--named-by FILE)"
            )


def _listed_names(path: Path, within: str) -> dict[str, str]:
    """The prediction of each frame by a CSV file.

    Args:
        path: The file.
        within: Folder that it must lie below; empty for anywhere.

    Raises:
        BadFile: It is none, or names a frame twice.
        StorageError: It lies elsewhere by now.
    """
    names: dict[str, str] = {}
    folder, name = os.path.split(real_path(path, within))
    try:
        with (
            open_beneath(folder, name) as content,
            io.TextIOWrapper(content, encoding="utf-8", newline="") as file,
        ):
            lines = csv.reader(file)
            if next(lines, None) != _LISTED:
                raise BadFile(f"expected the columns {' and '.join(_LISTED)}", str(path))
            for line in lines:
                if len(line) != len(_LISTED) or line[0] in names:
                    raise BadFile(
                        f"line {lines.line_num}: expected a frame that no line before names, and "
                        "its prediction",
                        str(path),
                    )
                names[line[0]] = line[1]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadFile(f"cannot be read: {error}", str(path)) from error
    return names


def read_match(folder: Path) -> Match:
    """What `match_predictions` found.

    Raises:
        BadFile: It is missing or damaged.
    """
    return _match_and_rows(folder)[0]


def _match_and_rows(folder: Path) -> tuple[Match, pa.Table]:
    path = folder / MATCHED_FILE
    try:
        table = pq.read_table(path)
        return Match(**json.loads(table.schema.metadata[_ABOUT])), table
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        raise BadFile(
            f"cannot be read: {' '.join(str(error).split())}; run python -m "
            "training.match_predictions",
            str(path),
        ) from error


class PredictionFiles:
    """Reads the predictions of a split's frames, as class ids of the model."""

    def __init__(
        self, folder: Path, predictions: PredictionSet, decoder: "PredictionDecoder"
    ) -> None:
        """Open what `match_predictions` wrote to ``folder``."""
        _, table = _match_and_rows(folder)
        self._keys: list[str | None] = table["key"].to_pylist()
        self._sizes: list[int | None] = table["size"].to_pylist()
        self._confidence: list[str | None] = table["confidence"].to_pylist()
        self._confidence_sizes: list[int | None] = table["confidence_size"].to_pylist()
        self._place, self._decoder = predictions.place, decoder
        spans = {
            row[key]: (row[start], row[length])
            for row in table.to_pylist()
            for key, start, length in (
                ("key", "start", "length"),
                ("confidence", "confidence_start", "confidence_length"),
            )
            if row[start] is not None
        }
        options = SourceOptions.from_json(predictions.options)
        self._files = open_reader(predictions.opened, options, spans)

    def ids(self, row: int, truth: UInt8) -> UInt8:
        """The prediction of a frame, (H, W) uint8 [class id].

        Args:
            row: The frame's position in the split.
            truth: (H, W) uint8 [class id], its label.

        Raises:
            BadPrediction: It is missing, damaged, of another size, or of pixels that are no class.
        """
        key = self._keys[row]
        if key is None:
            raise BadPrediction("has no prediction", self._place)
        return self._decoded(key, self._sizes[row], lambda png: self._decoder.ids(png, truth))

    def confidence(self, row: int, ids: UInt8, size: Size) -> Confidence | None:
        """How sure the prediction of a frame is; None where nothing says so.

        Args:
            row: The frame's position in the split.
            ids: (H, W) uint8 [class id], its prediction.
            size: At which the frame is compared.

        Raises:
            BadPrediction: It is damaged, or its probabilities say another class.
        """
        key = self._confidence[row]
        if key is None:
            return None

        def decoded(content: bytes) -> Confidence:
            if key.endswith(".npz"):
                return self._decoder.probabilities(content, ids, size)
            return decoded_confidence(content, size)

        return self._decoded(key, self._confidence_sizes[row], decoded)

    def _decoded(self, key: str, size: int | None, decode: Callable[[bytes], _T]) -> _T:
        path = f"{self._place}/{key}"
        try:
            content = self._files.read(key)
            if len(content) == size:
                return decode(content)
        except BadFile as error:
            raise BadPrediction(error.reason, path) from error
        raise BadPrediction(
            f"has changed since the validation began: {len(content):,} bytes, not {size:,}", path
        )


class PredictionDecoder:
    """Makes class ids of predictions' files.

    Attributes:
        layer_of: (n_classes,) uint8, where each class's probabilities are among those of a frame.
    """

    def __init__(
        self,
        predictions: PredictionSet,
        classes: LabelClasses,
        labels: DatasetClasses,
        dataset: str,
    ) -> None:
        """Prepare for the predictions of a dataset's frames.

        Args:
            predictions: The predictions.
            classes: The model's classes.
            labels: The dataset's.
            dataset: Its name, for errors.

        Raises:
            InvalidInput: Their class list has other classes.
        """
        self._of_prediction = PredictionClasses.of(predictions, classes, labels, dataset)
        self._list = self._of_prediction.keys
        self._classes = len(classes)
        self._layers, self.layer_of = _layers_of(classes, labels)
        if self._list.encoding.is_colour:
            self._left_out = frozenset[int]()
        else:  # what trainings write where nothing counts
            self._left_out = frozenset({UNKNOWN_CLASS}) - {*self._list.class_of_key}
        self._left_out |= {
            key.key
            for key, of in zip(self._list.keys, self._list.class_ids, strict=True)
            if self._of_prediction.of_key[of] == UNKNOWN_CLASS
        }

    def ids(self, png: bytes, truth: UInt8) -> UInt8:
        """(H, W) uint8 [class id]; UNKNOWN_CLASS where neither it nor the label has a class.

        Args:
            png: The prediction.
            truth: (H, W) uint8 [class id], the frame's label.

        Raises:
            BadFile: It is damaged, of another size, or has pixels without a class.
        """
        ids = self._of_prediction.ids(png)
        if ids.shape != truth.shape:
            raise BadFile(
                f"has {ids.shape[1]}x{ids.shape[0]} pixels, and the label "
                f"{truth.shape[1]}x{truth.shape[0]}: write predictions at the label's size"
            )
        if ids.max(initial=0) == UNKNOWN_CLASS:
            self._check_unknown(png, ids, truth)
        return ids

    def probabilities(self, npz: bytes, ids: UInt8, size: Size) -> Confidence:
        """The confidence of a frame by its probabilities; see `decoded_probabilities`."""
        return decoded_probabilities(npz, ids, self.layer_of, self._layers, size)

    def _check_unknown(self, png: bytes, ids: UInt8, truth: UInt8) -> None:
        """Refuse keys of no class, and pixels left out that the label has a class for."""
        keys = decode_keys(png, self._list.encoding)
        unknown = ids == UNKNOWN_CLASS
        off_list = unknown & ~np.isin(keys, [*self._left_out])
        if off_list.any():
            values, counts = np.unique(keys[off_list], return_counts=True)
            most = np.argsort(-counts, kind="stable")[:_MOST_KEYS_SHOWN]
            text = self._list.encoding.key_text
            listed = ", ".join(f"{text(int(values[n]))} ({counts[n]:,})" for n in most)
            raise BadFile(
                f"{int(off_list.sum()):,} pixels of {len(values):,} values are no class: {listed}; "
                f"expected {self._expected()}"
            )
        without = int((unknown & (truth < self._classes)).sum())
        if without:
            raise BadFile(
                f"{without:,} pixels have no class, and the label has one there: every pixel that "
                "the label knows needs a class that scores count"
            )

    def _expected(self) -> str:
        keys = sorted(key.key for key in self._list.keys)
        if self._list.encoding.is_colour:
            return f"the {len(keys):,} colours of its class list"
        return f"{keys[0]} to {keys[-1]}"


def _layers_of(classes: LabelClasses, labels: DatasetClasses) -> tuple[int, UInt8]:
    """Number of layers of probabilities, one for each id of IDS, and that of each class."""
    if classes.map is not None:
        return len(classes), np.arange(len(classes), dtype=np.uint8)
    layer_of = np.zeros(len(classes), np.uint8)
    for label_id, class_id in enumerate(classes.of_label[: len(labels)].tolist()):
        if class_id != UNKNOWN_CLASS:
            layer_of[class_id] = label_id
    return len(labels), layer_of
