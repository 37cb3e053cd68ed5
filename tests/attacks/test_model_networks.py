"""Weights of somebody else's: the network is built by our own code, and they are numbers alone."""

import hashlib
import json
from dataclasses import replace
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


def test_a_model_comes_back_to_the_last_bit(network: Any, tmp_path: Path) -> None:
    """Saved and read it answers as before; the same weights are the same bytes, as digests need."""
    write_model(network, ABOUT, tmp_path)
    first = (tmp_path / WEIGHTS_FILE).read_bytes()
    again, about = read_model(tmp_path)
    assert about == replace(ABOUT, sha256=hashlib.sha256(first).hexdigest())
    assert answers(again) == answers(network)
    write_model(again, ABOUT, tmp_path)
    assert (tmp_path / WEIGHTS_FILE).read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == [ABOUT_FILE, WEIGHTS_FILE]


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
    (tmp_path / ABOUT_FILE).write_text(json.dumps(unknown.to_json()))
    with pytest.raises(BadFile, match=r"unknown network 'os\.system'"):
        read_model(tmp_path)


def test_a_foreign_network_needs_trust(tmp_path: Path) -> None:
    """It is loaded where its author is trusted, and fits what its model.json says."""
    import tensorflow as tf

    layers = tf.keras.layers
    images = layers.Input((*SIZE, 3))
    foreign = tf.keras.Model(images, layers.Conv2D(len(ABOUT.classes), 1)(images / 255))
    foreign.save(tmp_path / KERAS_FILE)
    content = (tmp_path / KERAS_FILE).read_bytes()
    about = replace(ABOUT, network="theirs", sha256=hashlib.sha256(content).hexdigest())
    (tmp_path / ABOUT_FILE).write_text(json.dumps(about.to_json()))
    with pytest.raises(BadFile, match=r"a foreign network's: .*give --trust_model"):
        read_model(tmp_path)
    trusted, read = read_model(tmp_path, trust_model=True)
    assert answers(trusted) == answers(foreign)
    assert read == about
    (tmp_path / ABOUT_FILE).write_text(json.dumps(replace(about, width_px=8).to_json()))
    with pytest.raises(BadFile, match=r"its model\.json says 64 x 8 pixels and 4 classes"):
        read_model(tmp_path, trust_model=True)
    (tmp_path / KERAS_FILE).write_bytes(content + b"\0")
    with pytest.raises(BadFile, match=r"does not belong to the model\.json"):
        read_model(tmp_path, trust_model=True)
