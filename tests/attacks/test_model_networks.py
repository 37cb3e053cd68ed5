"""Weights of somebody else's: the network is built by our own code, and they are numbers alone."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from catalog.errors import BadFile
from tests.attacks.test_models import ABOUT
from tests.training.drawn_frames import HEIGHT_PX, WIDTH_PX
from training.network.about_model import ABOUT_FILE
from training.network.model_files import KERAS_FILE, WEIGHTS_FILE, read_model, write_model

pytestmark = pytest.mark.training

SIZE = (HEIGHT_PX, WIDTH_PX)
IMAGES = np.random.default_rng(7).integers(0, 256, (2, *SIZE, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def network() -> Any:
    """Our network, every weight a number of its own."""
    from training.network.networks import build_network

    built = build_network("small_unet", *SIZE, len(ABOUT.classes))
    random = np.random.default_rng(3)
    for variable in built.weights:
        variable.assign(random.normal(0, 0.1, variable.shape).astype(np.float32))
    return built


def answers(network: Any) -> bytes:
    """The logits for IMAGES, to the last bit."""
    logits: npt.NDArray[np.float32] = network(IMAGES, training=False).numpy()
    assert np.isfinite(logits).all()
    return logits.tobytes()


def earlier(folder: Path, archive: bytes) -> Path:
    """A model folder as the release before wrote it."""
    folder.mkdir()
    (folder / KERAS_FILE).write_bytes(archive)
    about = asdict(replace(ABOUT, sha256=hashlib.sha256(archive).hexdigest()))
    for later in ("network", "format", "parent", "class_map"):
        del about[later]
    (folder / ABOUT_FILE).write_text(json.dumps(about))
    return folder


@pytest.fixture(scope="module")
def archive(network: Any, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What Keras saves of it."""
    path = tmp_path_factory.mktemp("archive") / KERAS_FILE
    network.save(path)
    return path.read_bytes()


def rewritten(archive: bytes, change: Callable[[str, bytes], bytes], **options: Any) -> bytes:
    """The archive with its files changed."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(buffer, "w", **options) as new,
    ):
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return buffer.getvalue()


def test_a_model_comes_back_to_the_last_bit(network: Any, archive: bytes, tmp_path: Path) -> None:
    """Saved and read it answers as before; so does one of the release before.

    The same weights are the same bytes, so that a digest names a model; the archive of an earlier
    run in the folder goes.
    """
    folder = earlier(tmp_path / "model", archive)
    of_earlier, about = read_model(folder)
    assert (about.format, about.network) == (1, "small_unet")
    assert answers(of_earlier) == answers(network)
    write_model(network, ABOUT, folder)
    first = (folder / WEIGHTS_FILE).read_bytes()
    again, about = read_model(folder)
    assert about == replace(ABOUT, sha256=hashlib.sha256(first).hexdigest())
    assert answers(again) == answers(network)
    write_model(again, ABOUT, folder)
    assert (folder / WEIGHTS_FILE).read_bytes() == first
    assert sorted(path.name for path in folder.iterdir()) == [ABOUT_FILE, WEIGHTS_FILE]


def test_what_an_archive_describes_is_not_built(archive: bytes, tmp_path: Path) -> None:
    """A layer that is one of TensorFlow's functions wrote any file while Keras loaded it safely."""
    mark = tmp_path / "written"

    def with_a_write(name: str, content: bytes) -> bytes:
        if name != "config.json":
            return content
        described = json.loads(content)
        described["config"]["layers"].append(
            {
                "module": "builtins",
                "class_name": "TFOpLambda",
                "registered_name": "TFOpLambda",
                "config": {"name": "w", "dtype": "float32", "function": "io.write_file"},
                "build_config": {},
                "name": "w",
                "inbound_nodes": [["_CONSTANT_VALUE", -1, str(mark), {"contents": "x"}]],
            }
        )
        return json.dumps(described).encode()

    folder = earlier(tmp_path / "model", rewritten(archive, with_a_write))
    with pytest.raises(
        BadFile, match=r"another network than small_unet: TFOpLambda; .*only if you"
    ):
        read_model(folder)
    assert not mark.exists()
    with pytest.raises(BadFile):
        read_model(folder, trust_model=True)
    assert mark.exists()  # what trusting means


def test_a_foreign_network_needs_trust(tmp_path: Path) -> None:
    """It is loaded where its author is trusted, and fits what its model.json says."""
    import tensorflow as tf

    layers = tf.keras.layers
    images = layers.Input((*SIZE, 3))
    foreign = tf.keras.Model(images, layers.Conv2D(len(ABOUT.classes), 1)(images / 255))
    foreign.save(tmp_path / KERAS_FILE)
    content = (tmp_path / KERAS_FILE).read_bytes()
    folder = earlier(tmp_path / "model", content)
    with pytest.raises(BadFile, match=r"another network .*give --trust_model"):
        read_model(folder)
    trusted, about = read_model(folder, trust_model=True)
    assert answers(trusted) == answers(foreign)
    (folder / ABOUT_FILE).write_text(
        json.dumps(asdict(replace(about, width_px=8)) | {"classes": list(about.classes)})
    )
    with pytest.raises(BadFile, match=r"its model\.json says 64 x 8 pixels and 4 classes"):
        read_model(folder, trust_model=True)
    (folder / KERAS_FILE).write_bytes(content + b"\0")
    with pytest.raises(BadFile, match=r"does not belong to the model\.json"):
        read_model(folder, trust_model=True)


def _of_numbers(change: Callable[[Any], None]) -> Callable[[str, bytes], bytes]:
    import h5py

    def changed(name: str, content: bytes) -> bytes:
        if name != "model.weights.h5":
            return content
        buffer = io.BytesIO(content)
        with h5py.File(buffer, "r+") as file:
            change(file)
        return buffer.getvalue()

    return changed


def _put(file: Any, make: Callable[[Any], None]) -> None:
    del file["layers/conv2d/vars/0"]
    make(file["layers/conv2d/vars"])


def test_numbers_of_an_archive(network: Any, archive: bytes, tmp_path: Path) -> None:
    """They lie in its own HDF5 file, in the network's shapes: no links, no other file's bytes."""
    import h5py

    from training.network.keras_archive import take_weights

    shape = (3, 3, 5, 24)
    elsewhere = tmp_path / "elsewhere.h5"
    with h5py.File(elsewhere, "w") as file:
        file["x"] = np.zeros(shape, np.float32)
    raw = [(str(elsewhere), 0, 4 * 3 * 3 * 5 * 24)]
    layout = h5py.VirtualLayout(shape, np.float32)
    layout[:] = h5py.VirtualSource(elsewhere, "x", shape)
    changes: list[Callable[[Any], None]] = [
        lambda vars_: vars_.__setitem__("0", h5py.ExternalLink(elsewhere, "x")),
        lambda vars_: vars_.__setitem__("0", h5py.SoftLink("/layers/conv2d_1/vars/0")),
        lambda vars_: vars_.create_dataset("0", shape, np.float32, external=raw),
        lambda vars_: vars_.create_virtual_dataset("0", layout),
        lambda vars_: vars_.create_dataset("0", shape, np.float32, compression="gzip"),
        lambda vars_: vars_.create_dataset("0", (10**6, 10**6), np.float32),
        lambda vars_: vars_.create_dataset("0", shape, h5py.string_dtype()),
        lambda vars_: vars_.create_group("0"),
        lambda vars_: None,
    ]
    before = answers(network)
    for make in changes:
        with pytest.raises(ValueError, match="layers/conv2d/vars/0"):
            take_weights(network, rewritten(archive, _of_numbers(partial(_put, make=make))))
    bomb = rewritten(
        archive,
        lambda name, content: bytes(64 << 20) if name.endswith("h5") else content,
        compression=zipfile.ZIP_DEFLATED,
    )
    for content in (bomb, b"", archive[:1000], archive[:-1000]):
        with pytest.raises(ValueError, match=r"is no archive of|has more than"):
            take_weights(network, content)
    assert answers(network) == before


def test_weights_of_another_shape(network: Any, tmp_path: Path) -> None:
    """Names, types, shapes and sizes are the network's, or nothing is taken."""
    from safetensors.numpy import load, save

    from training.network.weights_file import take_weights

    write_model(network, ABOUT, tmp_path)
    content = (tmp_path / WEIGHTS_FILE).read_bytes()
    whole = load(content)
    first = next(iter(sorted(whole)))
    length = len(content) - 8 - int.from_bytes(content[:8], "little")
    lie = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, length]}})
    wrong = [
        (save({name: array for name, array in whole.items() if name != first}), "37 weights"),
        (save({**whole, "extra": np.zeros(3)}), "39 weights"),
        (save({**whole, first: whole[first].astype(np.float64)}), f"{first} is float64"),
        (save({**whole, first: whole[first].ravel()}), rf"{first} is float32 \(1080,\)"),
        (content[:-4], "is no safetensors file"),
        (b"\xff" * 8 + content[8:], "is no safetensors file"),
        (len(lie).to_bytes(8, "little") + lie.encode() + bytes(length), "is no safetensors file"),
        (b"", "is no safetensors file"),
    ]
    before = answers(network)
    for weights, said in wrong:
        with pytest.raises(ValueError, match=said):
            take_weights(network, weights)
    assert answers(network) == before
    (tmp_path / WEIGHTS_FILE).write_bytes(content + bytes(2 << 20))
    with pytest.raises(BadFile, match="is larger than"):
        read_model(tmp_path)
    unknown = replace(ABOUT, network="os.system")
    (tmp_path / ABOUT_FILE).write_text(json.dumps(asdict(unknown)))
    with pytest.raises(BadFile, match=r"unknown network 'os\.system'"):
        read_model(tmp_path)
