"""Networks of ONNX files, run by onnxruntime itself: what they give is what NumPy works out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from catalog.errors import BadFile
from pipeline.runs.onnx_file import read_onnx
from pipeline.runs.onnx_model import OnnxModel, onnx_contract
from tests.training.onnx_files import FLOAT, HALF, UINT8, colour_network, colour_weights, save
from training.network.onnx_predictor import OnnxPredictor

CLASSES = ("a", "b", "c", "d")
HEIGHT_PX, WIDTH_PX = 24, 40


def _predictor(path: Path, said: Mapping[str, str] = {}, *, mirrors: bool = False) -> OnnxPredictor:
    return OnnxPredictor(_described(path, said), mirrors=mirrors)


def _described(path: Path, said: Mapping[str, str] = {}) -> OnnxModel:
    file = read_onnx(path)
    takes, gives = onnx_contract(file, said, len(CLASSES))
    return OnnxModel(
        model="net",
        file=str(path),
        sha256=file.sha256,
        producer=file.producer,
        version=file.model_version,
        opset=file.opset,
        data_files=file.data_files,
        input=takes,
        output=gives,
        classes=CLASSES,
    )


@pytest.fixture
def image() -> Any:
    """(24, 40, 3) uint8 whose quarters have colours of their own, with noise."""
    random = np.random.default_rng(3)
    coarse = random.integers(0, 256, (3, 5, 3)).repeat(8, 0).repeat(8, 1)
    return np.clip(coarse + random.normal(0, 4, coarse.shape), 0, 255).astype(np.uint8)


def _logits(image: Any, scale: float = 1.0, mean: Any = 0.0, std: Any = 1.0) -> Any:
    """(h, w, C) float64."""
    return ((image * scale - np.array(mean)) / np.array(std)) @ colour_weights(4).T.astype(float)


def _shares(logits: Any) -> Any:
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("network", "said", "changes"),
    [
        ({}, {}, {}),
        ({"layout": "nhwc", "size": ("h", "w")}, {"size": "40x24"}, {}),
        ({"dtype": UINT8, "metadata": {}}, {}, {}),
        ({"dtype": UINT8, "layout": "nhwc", "metadata": {"channels": "bgr"}}, {}, {"bgr": True}),
        ({"dtype": HALF}, {}, {"halves": True}),
        (
            {"metadata": {"scale": "1/255", "mean": "0.485/0.456/0.406"}},
            {"std": "0.229/0.224/0.225", "channels": "bgr"},
            {
                "bgr": True, "scale": 1 / 255, "mean": (0.485, 0.456, 0.406),
                "std": (0.229, 0.224, 0.225),
            },
        ),
    ],
)  # fmt: skip
def test_images_reach_a_network_as_it_takes_them(
    tmp_path: Path, image: Any, network: Any, said: Mapping[str, str], changes: dict[str, Any]
) -> None:
    """Layouts, types, channels and numbers: classes and probabilities are NumPy's."""
    path = colour_network(tmp_path / "a.onnx", 4, **{"size": (HEIGHT_PX, WIDTH_PX), **network})
    prediction = _predictor(path, said).predict(image)
    is_bgr, halves = changes.pop("bgr", False), changes.pop("halves", False)
    logits = _logits(image[..., ::-1] if is_bgr else image, **changes)
    shares, slack = _shares(logits), 2e-3 if halves else 2e-5
    surely = np.diff(np.sort(logits, axis=-1)[..., -2:])[..., 0] > slack
    assert surely.mean() > 0.9
    assert np.array_equal(prediction.best.ids[surely], logits.argmax(-1)[surely])
    assert prediction.confidence is not None
    assert np.allclose(prediction.confidence, shares.max(-1), atol=slack)
    entropy = -(shares * np.log(shares)).sum(-1).mean() / np.log(4)
    assert prediction.uncertainty == pytest.approx(entropy, abs=slack)
    two = np.sort(shares, axis=-1)[..., -2:]
    assert prediction.margin == pytest.approx((two[..., 1] - two[..., 0]).mean(), abs=slack)
    label = np.full((HEIGHT_PX, WIDTH_PX), 255, np.uint8)
    label[2:9] = 1
    expected = -np.log(shares[2:9, :, 1]).mean()
    assert prediction.loss(label) == pytest.approx(expected, abs=10 * slack)


def test_probabilities_say_what_their_logits_do(tmp_path: Path, image: Any) -> None:
    """Behind a Softmax the same classes, confidence, entropy and loss come out; enlarged, too."""
    size = (HEIGHT_PX, WIDTH_PX)
    logits = _predictor(colour_network(tmp_path / "a.onnx", 4, size=size)).predict(image)
    path = colour_network(tmp_path / "b.onnx", 4, size=size, ends=["Softmax"])
    shares = _predictor(path).predict(image)
    assert np.array_equal(shares.best.ids, logits.best.ids)
    assert logits.confidence is not None
    assert shares.confidence is not None
    assert np.allclose(shares.confidence, logits.confidence, atol=1e-5)
    for name in ("uncertainty", "margin"):
        assert getattr(shares, name) == pytest.approx(getattr(logits, name), abs=1e-5)
    label = np.ones(size, np.uint8)
    assert shares.loss(label) == pytest.approx(logits.loss(label), abs=1e-4)
    enlarged = shares.best.at_size(48, 80)
    planes = [
        np.asarray(Image.fromarray(plane).resize((80, 48), Image.Resampling.BILINEAR), np.float64)
        for plane in _shares(_logits(image)).transpose(2, 0, 1).astype(np.float32)
    ]
    assert (enlarged == np.argmax(planes, axis=0)).mean() > 0.999


def test_class_ids_are_taken_as_they_are(tmp_path: Path, image: Any) -> None:
    """Enlarged by the nearest pixel, with nothing said of probabilities; mirrored, too."""
    path = colour_network(
        tmp_path / "a.onnx", 4, size=(HEIGHT_PX, WIDTH_PX), stride=2, ends=["ArgMax"]
    )
    prediction = _predictor(path, mirrors=True).predict(image)
    ids = _logits(image[::2, ::2]).argmax(-1)
    assert np.array_equal(prediction.best.ids, ids)
    enlarged = prediction.best.at_size(HEIGHT_PX, WIDTH_PX)
    assert np.array_equal(enlarged, ids.repeat(2, 0).repeat(2, 1))
    assert (prediction.confidence, prediction.uncertainty, prediction.margin) == (None,) * 3
    mirrored = _logits(image[:, ::-1][::2, ::2]).argmax(-1)[:, ::-1]
    assert prediction.disagreement == pytest.approx((mirrored != ids).mean())
    assert (mirrored != ids).any()


def test_weights_beside_a_file_are_run_without_a_path(tmp_path: Path, image: Any) -> None:
    """What was hashed is what is run: another file in its place, or other weights, are refused."""
    size = (HEIGHT_PX, WIDTH_PX)
    path = colour_network(
        tmp_path / "a.onnx", 4, size=size, save_as_external_data=True, location="a.data",
        size_threshold=0,
    )  # fmt: skip
    described = _described(path)
    assert np.array_equal(
        OnnxPredictor(described).predict(image).best.ids,
        _predictor(colour_network(tmp_path / "b.onnx", 4, size=size)).predict(image).best.ids,
    )
    (tmp_path / "a.data").write_bytes(bytes((tmp_path / "a.data").stat().st_size))
    with pytest.raises(BadFile, match="changed since the job was begun"):
        OnnxPredictor(described)


def _with_node(path: Path, node: Any, kind: int = FLOAT, dims: Any = (1, 4, "h", "w")) -> Path:
    """A network whose output is made by a node of its logits."""
    weights = numpy_helper.from_array(colour_weights(4)[:, :, None, None], "w")
    image = helper.make_tensor_value_info("image", FLOAT, [1, 3, HEIGHT_PX, WIDTH_PX])
    given = helper.make_tensor_value_info("out", kind, dims)
    nodes = [helper.make_node("Conv", ["image", "w"], ["logits"]), *node]
    return save(path, helper.make_graph(nodes, "g", [image], [given], [weights]))


def _constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value)))


def test_what_is_no_answer_is_an_error_by_the_files_name(tmp_path: Path, image: Any) -> None:
    """NaN, class ids beyond the classes, sums that are no probabilities, other shapes."""
    path = tmp_path / "a.onnx"
    add = helper.make_node("Add", ["logits", "n"], ["out"])
    for value, words in ((np.float32("nan"), "not finite"), (np.float32("inf"), "not finite")):
        _with_node(path, [_constant("n", value), add])
        with pytest.raises(BadFile, match=rf"a\.onnx: output out: .*{words}"):
            _predictor(path).predict(image)
    cast = helper.make_node("Cast", ["sum"], ["out"], to=TensorProto.INT64)
    largest = [
        helper.make_node("ArgMax", ["logits"], ["best"], axis=1, keepdims=1),
        _constant("n", np.int64(4)),
    ]
    for operator, wrong in (("Add", "[4-7]"), ("Sub", "-[1-4]")):
        nodes = [*largest, helper.make_node(operator, ["best", "n"], ["sum"]), cast]
        _with_node(path, nodes, TensorProto.INT64, (1, 1, "h", "w"))
        with pytest.raises(BadFile, match=f"gives the class id {wrong}; it has the 4 classes"):
            _predictor(path).predict(image)
    _with_node(path, [helper.make_node("Sigmoid", ["logits"], ["out"])])
    with pytest.raises(BadFile, match="expected probabilities, which sum to 1"):
        _predictor(path, {"kind": "probabilities"}).predict(image)
    softmax = helper.make_node("Softmax", ["logits"], ["shares"], axis=1)
    _with_node(path, [softmax, helper.make_node("Relu", ["shares"], ["out"])])
    with pytest.raises(BadFile, match="give --onnx kind=probabilities"):
        _predictor(path).predict(image)
    assert _predictor(path, {"kind": "probabilities"}).predict(image).uncertainty is not None
    concat = helper.make_node("Concat", ["logits", "logits"], ["out"], axis=1)
    _with_node(path, [concat], dims=(1, "c", "h", "w"))
    with pytest.raises(BadFile, match=r"gives float32 \[1, 8, 24, 40\]; expected \[1, 4, h, w\]"):
        _predictor(path).predict(image)


def test_what_onnxruntime_cannot_run_is_an_error_by_the_files_name(tmp_path: Path) -> None:
    """An operator that no version of ONNX has, and a graph that does not fit together."""
    path = _with_node(tmp_path / "a.onnx", [helper.make_node("Frobnicate", ["logits"], ["out"])])
    with pytest.raises(BadFile, match=r"a\.onnx: cannot be loaded by onnxruntime: .*Frobnicate"):
        _predictor(path)
    path = _with_node(tmp_path / "b.onnx", [helper.make_node("Relu", ["nothing"], ["out"])])
    with pytest.raises(BadFile, match=r"b\.onnx: cannot be loaded by onnxruntime"):
        _predictor(path)


def test_the_same_file_fed_otherwise_is_told_apart(tmp_path: Path) -> None:
    """Its digest is of the file, that of its results of how it is fed, too."""
    path = colour_network(tmp_path / "a.onnx", 4, size=(HEIGHT_PX, WIDTH_PX))
    one, other = _described(path), _described(path, {"channels": "bgr"})
    assert (one.sha256, one.digest) != (other.sha256, other.digest)
    assert one.sha256 == other.sha256
    assert replace(one, file="/elsewhere").digest == one.digest
