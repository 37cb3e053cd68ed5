"""mmsegmentation: images, masks, lists of names, and a config fragment that names them.

Source: open-mmlab/mmsegmentation, mmseg/datasets/basesegdataset.py; open-mmlab/mmengine, its
tutorial on configs (predefined variables).
"""

from collections import defaultdict
from pathlib import Path
from pprint import pformat

from catalog.storage.atomic_write import atomic_write
from catalog.values import FrameProgress
from pipeline.exports.folders import FrameFolders
from pipeline.exports.frames import FramesToExport
from pipeline.exports.progress import Report

IMAGES, MASKS, LISTS = "img_dir", "ann_dir", "splits"
CONFIG = "dataset.py"


def write_mmseg(
    frames: FramesToExport, out: Path, workers: int, done: FrameProgress, report: Report
) -> None:
    """Write a dataset as mmsegmentation reads it.

    A config inherits `dataset.py` and has `train_dataset`, `validation_dataset` and so on, one for
    each split. A dataset of mmsegmentation has one suffix of images: a split with two is a
    ConcatDataset.
    """
    folders = FrameFolders(out, IMAGES, MASKS)
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for frame in folders.write(frames, range(len(frames)), workers, done, report):
        names[frame.split, frame.suffix].append(frame.name)
    for (split, suffix), listed in names.items():
        text = "".join(f"{name}\n" for name in listed)
        atomic_write(out / _list(split, suffix), text, parents=True)
    atomic_write(out / CONFIG, _config(frames, list(names)))


def _list(split: str, suffix: str) -> str:
    return f"{LISTS}/{split}{suffix}.txt"


def _config(frames: FramesToExport, parts: list[tuple[str, str]]) -> str:
    """The config fragment: Python that mmengine reads, values only."""
    classes = frames.classes
    metainfo = {"classes": classes.names, "palette": classes.colours.tolist()}
    lines = [
        "# Written by framesift dataset export; inherit it by _base_.",
        "data_root = '{{ fileDirname }}'",
        f"num_classes = {len(classes)}",
        f"metainfo = {pformat(metainfo, sort_dicts=False, compact=True)}",
    ]
    for split in dict.fromkeys(split for split, _ in parts):
        datasets = [_dataset(split, suffix) for of, suffix in parts if of == split]
        joined = ", ".join(datasets)
        value = joined if len(datasets) == 1 else f"dict(type='ConcatDataset', datasets=[{joined}])"
        lines.append(f"{_identifier(split)}_dataset = {value}")
    return "\n".join(lines) + "\n"


def _dataset(split: str, suffix: str) -> str:
    prefix = {"img_path": f"{IMAGES}/{split}", "seg_map_path": f"{MASKS}/{split}"}
    return (
        "dict(type='BaseSegDataset', data_root=data_root, metainfo=metainfo, "
        f"ann_file={_list(split, suffix)!r}, data_prefix={prefix!r}, img_suffix={suffix!r}, "
        "seg_map_suffix='.png', reduce_zero_label=False)"
    )


def _identifier(split: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in split)
