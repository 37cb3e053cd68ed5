"""A dataset for other programs: a table, JSON lines, a list of files, or a FiftyOne dataset."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_path
from ingest.labels.class_list import ClassList
from pipeline.datasets.export_formats import TABLES, TEXTS, ExportFormat
from pipeline.manifest import FrameFile, Manifest
from query.run.workbook import write_workbook

_GROUND_TRUTH = "ground_truth"
"""Field of FiftyOne with the labels of the dataset's first class list; then _2, _3..."""

_ROWS = 1_000
"""Rows that are texts in memory at once."""

_MASKS = "masks"
_FIFTYONE_FILES = {"metadata.json", "samples.json", _MASKS}

_COLUMNS = ("fkey", "split", "scene", "camera", "image", "label", "image_size", "label_size")


def export_table(manifest: Manifest, tags: Sequence[str]) -> pa.Table:
    """A row per frame: names, paths or URIs of its files, sizes [bytes], pixels of each class."""
    table = pa.table(
        {
            name: manifest.image_paths() if name == "image"
            else manifest.label_paths() if name == "label"
            else manifest.frames[name]
            for name in _columns(manifest)
        }
    )  # fmt: skip
    pixels = manifest.frames["class_pixels"].combine_chunks()
    for index, tag in enumerate(tags):
        of_class = pc.list_element(pixels, index) if len(pixels) > pixels.null_count else None
        table = table.append_column(tag, of_class or pa.nulls(len(pixels), pa.int32()))
    return table


def _columns(manifest: Manifest) -> tuple[str, ...]:
    """Columns before those of classes."""
    return (*_COLUMNS, "label_segments") if _is_panoptic(manifest) else _COLUMNS


def _is_panoptic(manifest: Manifest) -> bool:
    lists = manifest.header.dataset_classes.lists
    return any(class_list.encoding.is_panoptic for class_list in lists)


def export_text(
    manifest: Manifest, tags: Sequence[str], format_: ExportFormat, *, with_labels: bool = False
) -> Iterator[str]:
    """A dataset as text, some lines at a time.

    Args:
        manifest: Its frames, or those of a split.
        tags: Class tag of each entry of class_pixels.
        format_: "csv" (a header line first), "jsonl" (an object per frame), or "files" (the path or
            URI of a camera image per line).
        with_labels: In "files", the label's path after each image's, a tab between; and the
            segments of a panoptic label after another tab.

    Raises:
        InvalidInput: A format that is no text, or a path that would be more than one line of it.
    """
    if format_ not in TEXTS:
        raise InvalidInput(f"format {format_}: expected one of {', '.join(TEXTS)}")
    if format_ == "files":
        _check_lines(manifest, "\t\r\n" if with_labels else "\r\n")
    return _text(manifest, tags, format_, with_labels)


def _check_lines(manifest: Manifest, parting: str) -> None:
    """Refuse names that would end a line or a field: what follows would be a path of their own."""
    for start in range(0, len(manifest), _ROWS):
        portion = Manifest(manifest.header, manifest.frames.slice(start, _ROWS))
        for path in (*portion.image_paths(), *portion.label_paths()):
            if path and any(character in path for character in parting):
                raise InvalidInput(
                    f"format files: {path!a} is no line; csv and jsonl take every name"
                )


def _text(
    manifest: Manifest, tags: Sequence[str], format_: ExportFormat, with_labels: bool
) -> Iterator[str]:
    if format_ == "csv":
        yield _csv_line([*_columns(manifest), *tags])
    for start in range(0, len(manifest), _ROWS):
        portion = Manifest(manifest.header, manifest.frames.slice(start, _ROWS))
        if format_ == "files":
            files = zip(portion.image_paths(), portion.labels(), strict=True)
            yield "".join(
                f"{image}{_of_label(label) if with_labels else ''}\n" for image, label in files
            )
            continue
        rows = export_table(portion, tags).to_pylist()
        if format_ == "csv":
            yield "".join(_csv_line(list(row.values())) for row in rows)
        else:
            yield "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _of_label(label: FrameFile | None) -> str:
    """What a list of files has of a label, after its image's path."""
    if label is None:
        return "\t"
    return f"\t{label.path}" + ("" if label.segments is None else f"\t{label.segments}")


def _csv_line(values: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def write_export(
    manifest: Manifest,
    tags: Sequence[str],
    format_: ExportFormat,
    out: Path,
    *,
    with_labels: bool = False,
) -> None:
    """Write a dataset to a file; as "fiftyone", to a folder."""
    if format_ == "fiftyone":
        _write_atomically(
            out,
            lambda temporary_path: _write_fiftyone(manifest, tags, temporary_path, out.absolute()),
            is_folder=True,
        )
    elif format_ in TABLES:
        table = export_table(manifest, tags)
        write = _write_parquet if format_ == "parquet" else _write_xlsx
        _write_atomically(out, lambda temporary_path: write(temporary_path, table))
    else:
        _write_atomically(
            out,
            lambda temporary_path: _write_lines(
                temporary_path, export_text(manifest, tags, format_, with_labels=with_labels)
            ),
        )


def _write_parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="zstd")


def _write_xlsx(path: Path, table: pa.Table) -> None:
    with path.open("wb") as file:
        write_workbook(file, table.schema, table.to_batches(_ROWS))


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)


def fiftyone_document(manifest: Manifest, tags: Sequence[str]) -> dict[str, Any]:
    """A FiftyOne dataset as one JSON document, which holds no masks.

    Raises:
        InvalidInput: Its labels are panoptic: their masks would have to be made.
    """
    if _is_panoptic(manifest):
        raise InvalidInput(
            "format fiftyone: a panoptic label is no mask of FiftyOne's, and a server sends no "
            "masks; export on the machine of the home, without --server, which writes them"
        )
    samples = [*fiftyone_samples(manifest, tags)]
    return {"metadata": fiftyone_metadata(manifest, tags), "samples": samples}


def fiftyone_metadata(manifest: Manifest, tags: Sequence[str]) -> dict[str, Any]:
    """metadata.json: classes, and which value of a label image is which."""
    header = manifest.header
    classes = header.dataset_classes
    targets = {
        name: dict(zip(map(str, range(len(classes))), classes.names, strict=True))
        if class_list.encoding.is_panoptic
        else _mask_targets(class_list)
        for name, class_list in zip(_mask_fields(manifest), classes.lists, strict=True)
    }
    return {
        "name": f"{header.name}-v{header.version}",
        "media_type": "image",
        "info": {
            "framesift": {
                "dataset": header.name,
                "version": header.version,
                "id": header.id,
                "snapshot": header.snapshot,
                "class_tags": list(tags),
            },
            "classes": {
                name: list(dict.fromkeys(target.values())) for name, target in targets.items()
            },
            "mask_targets": targets,
        },
    }


def _mask_fields(manifest: Manifest) -> list[str]:
    """For each class list the field of its labels: FiftyOne has mask targets by field."""
    numbers = range(1, len(manifest.header.dataset_classes.lists) + 1)
    return [_GROUND_TRUTH if n == 1 else f"{_GROUND_TRUTH}_{n}" for n in numbers]


def _mask_targets(class_list: ClassList) -> dict[str, str]:
    """Name of each key of a label's pixels."""
    return {class_list.encoding.key_text(key.key): key.listed_name for key in class_list.keys}


def fiftyone_samples(
    manifest: Manifest, tags: Sequence[str], masks: Path | None = None
) -> Iterator[dict[str, Any]]:
    """One sample per frame: the image, its split as a tag, the label image as its segmentation.

    Args:
        masks: Folder of the masks of panoptic labels; None where there are no such labels.
    """
    classes = manifest.header.dataset_classes
    field_of = dict(zip(classes.lists, _mask_fields(manifest), strict=True))
    for start in range(0, len(manifest), _ROWS):
        portion = Manifest(manifest.header, manifest.frames.slice(start, _ROWS))
        sources = portion.frames["label_source"].to_pylist()
        rows = zip(export_table(portion, tags).to_pylist(), sources, strict=True)
        for number, (row, source) in enumerate(rows, start):
            label = row["label"]
            if masks is not None and label and classes.list_of(source).encoding.is_panoptic:
                label = str(masks / _mask_name(number))
            yield {
                "filepath": row["image"],
                "tags": [row["split"]],
                **({field_of[classes.list_of(source)]: _segmentation(label)} if label else {}),
                "fkey": row["fkey"],
                "scene": row["scene"],
                "camera": row["camera"],
                **{tag: row[tag] for tag in tags},
            }


def _segmentation(label: str) -> dict[str, Any]:
    return {"_cls": "Segmentation", "tags": [], "mask_path": label}


def _mask_name(row: int) -> str:
    return f"{row:08}.png"


def _write_masks(manifest: Manifest, folder: Path) -> None:
    """Write a mask of class ids, 8 bits of grey, of each panoptic label.

    Raises:
        BadFile: A label is not there, or cannot be decoded.
    """
    from pipeline.prepared.decoded_frames import DecodedFrames

    classes = manifest.header.dataset_classes
    frames = DecodedFrames(manifest, classes)
    folder.mkdir()
    for row, source in enumerate(manifest.frames["label_source"].to_pylist()):
        if source is not None and classes.list_of(source).encoding.is_panoptic:
            ids = frames.label(row, frames.size_px(row))
            Image.fromarray(ids).save(folder / _mask_name(row))


def _write_fiftyone(manifest: Manifest, tags: Sequence[str], folder: Path, out: Path) -> None:
    """The folder of fiftyone.types.FiftyOneDataset, in its form without a version of FiftyOne.

    Args:
        folder: Where it is written.
        out: Where it will lie.
    """
    is_panoptic = _is_panoptic(manifest)
    if is_panoptic:
        _write_masks(manifest, folder / _MASKS)
    metadata = json.dumps(fiftyone_metadata(manifest, tags), indent=2, ensure_ascii=False)
    (folder / "metadata.json").write_text(metadata, encoding="utf-8")
    samples = fiftyone_samples(manifest, tags, out / _MASKS if is_panoptic else None)
    with (folder / "samples.json").open("w", encoding="utf-8") as file:
        file.write('{"samples": [')
        for number, sample in enumerate(samples):
            file.write((",\n" if number else "\n") + json.dumps(sample, ensure_ascii=False))
        file.write("\n]}\n")


def _write_atomically(out: Path, write: Callable[[Path], Any], *, is_folder: bool = False) -> None:
    """Write beside ``out``, then rename; a folder of an earlier export is replaced."""
    if out.is_dir() and {path.name for path in out.iterdir()} - _FIFTYONE_FILES:
        raise InvalidInput(f"{out}: the folder holds something else; name one that does not exist")
    with atomic_path(out, is_folder=is_folder, parents=is_folder) as temporary_path:
        write(temporary_path)
        if out.is_dir() and is_folder:
            shutil.rmtree(out)
