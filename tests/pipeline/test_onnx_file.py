"""ONNX files as their own words say: what is read of them, what fits, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from catalog.errors import BadFile, InvalidInput, NotFound
from pipeline.runs.onnx_file import OnnxFile, OnnxValue, read_onnx
from pipeline.runs.onnx_model import onnx_contract, onnx_in
from tests.training.onnx_files import FLOAT, colour_network, colour_weights, save


def _file(
    image: tuple[str, Sequence[int | str] | None] = ("float32", (1, 3, 64, 96)),
    output: tuple[str, Sequence[int | str] | None] = ("float32", (1, 4, 64, 96)),
    *,
    operator: str = "Conv",
    metadata: Mapping[str, str] = {"scale": "1"},
) -> OnnxFile:
    """A file that takes and gives these."""
    inputs, outputs = (
        [OnnxValue(name, dtype, None if dims is None else tuple(dims))]
        for name, (dtype, dims) in (("image", image), ("out", output))
    )
    return OnnxFile(
        Path("/nets/a.onnx"), "0" * 64, "torch 2", 0, 17, metadata, inputs, outputs,
        {"out": operator},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("image", "said", "expected"),
    [
        (("float32", (1, 3, 64, 96)), {}, ("nchw", 64, 96, "float32")),
        (("float16", ("n", 64, 96, 3)), {}, ("nhwc", 64, 96, "float16")),
        (
            ("float32", (1, "c", "h", "w")),
            {"size": "96x64", "layout": "nchw"},
            ("nchw", 64, 96, "float32"),
        ),
        (("float32", (1, 3, "h", 96)), {"size": "96x64"}, ("nchw", 64, 96, "float32")),
        (("float32", ("?", 3, 5, 3)), {"layout": "NHWC"}, ("nhwc", 3, 5, "float32")),
    ],
)  # fmt: skip
def test_what_a_network_takes(
    image: Any, said: Mapping[str, str], expected: tuple[str, int, int, str]
) -> None:
    """Layout, size and type come of the file; of what it leaves open, of its user."""
    takes, _ = onnx_contract(_file(image), said, 4)
    assert (takes.layout, takes.height_px, takes.width_px, takes.dtype) == expected


def test_pixels_become_what_file_or_user_says() -> None:
    """Flags count before metadata; one number stands for three; uint8 needs none."""
    metadata = {"Scale": "1/255", "mean": "[0.5, 0.25, 0.125]", "channels": "BGR"}
    takes, _ = onnx_contract(_file(metadata=metadata), {"std": "0.5"}, 4)
    assert (takes.scale, takes.mean, takes.std) == (1 / 255, (0.5, 0.25, 0.125), (0.5,) * 3)
    assert takes.channels == "bgr"
    takes, _ = onnx_contract(_file(metadata=metadata), onnx_in("scale=2,channels=rgb"), 4)
    assert (takes.scale, takes.channels) == (2, "rgb")
    takes, _ = onnx_contract(_file(("uint8", (1, 3, 64, 96)), metadata={}), {}, 4)
    assert (takes.scale, takes.mean, takes.std) == (1, (0, 0, 0), (1, 1, 1))


@pytest.mark.parametrize(
    ("output", "operator", "said", "expected"),
    [
        (("float32", (1, 4, 16, 24)), "Conv", {}, ("logits", False, 1)),
        (("float16", (1, 16, 24, 4)), "Conv", {"kind": "logits"}, ("logits", True, 3)),
        (("float32", (1, 4, 16, 4)), "Conv", {}, ("logits", False, 1)),
        (("float32", ("n", "c", "h", "w")), "Softmax", {}, ("probabilities", True, None)),
        (("float32", None), "", {}, ("logits", False, None)),
        (("float64", (1, 4, 16, 24)), "Sigmoid", {"kind": "logits"}, ("logits", True, 1)),
        (("int64", (1, 64, 96)), "ArgMax", {}, ("ids", True, None)),
        (("uint8", ("n", 1, 64, 96)), "ArgMax", {}, ("ids", True, 1)),
    ],
)
def test_what_a_network_gives(
    output: Any, operator: str, said: Mapping[str, str], expected: tuple[str, bool, int | None]
) -> None:
    """Kind and place of the classes come of the file's types, sizes and last operator."""
    _, gives = onnx_contract(_file(output=output, operator=operator), said, 4)
    assert (gives.kind, gives.is_said, gives.class_axis) == expected


@pytest.mark.parametrize(
    ("file", "said", "words"),
    [
        (_file(("int64", (1, 3, 64, 96))), {}, "image int64 [1, 3, 64, 96]; expected float32"),
        (_file(("float32", (1, 3, 64))), {}, "image float32 [1, 3, 64]; expected"),
        (_file(("float32", (8, 3, 64, 96))), {}, "expected a batch of 1"),
        (_file(("float32", (1, 1, 64, 96))), {}, "expected three channels"),
        (_file(("float32", (1, 3, 64, 3))), {}, "give --onnx layout=nchw or layout=nhwc"),
        (_file(("float32", (1, 3, 64, 96))), {"layout": "nhwc"}, "nchw fits"),
        (_file(("float32", (1, 3, "h", "w"))), {}, "whose size is free"),
        (_file(), {"size": "96x32"}, "of fixed size"),
        (_file(metadata={}), {}, "give --onnx scale=1"),
        (_file(metadata={"std": "0"}), {}, "its metadata: onnx std=0"),
        (_file(("uint8", (1, 3, 64, 96))), {}, "as they are; leave it out"),
        (_file(output=("float32", (1, 5, 64, 96))), {}, "[1, 5, 64, 96]; expected logits"),
        (_file(output=("float32", (1, 5, "h", "w"))), {}, "[1, 5, h, w]; expected logits"),
        (_file(output=("float32", (1, 64, 96))), {}, "out float32 [1, 64, 96]"),
        (_file(output=("bool", (1, 4, 64, 96))), {}, "out bool"),
        (_file(output=("int64", (1, 2, 64, 96))), {}, "or class ids [1, h, w] of integers"),
        (_file(operator="Sigmoid"), {}, "comes of Sigmoid"),
        (_file(), {"output": "aux"}, "it has out float32"),
        (replace(_file(), outputs=[*_file().outputs] * 2), {}, "name it: --onnx output=NAME"),
        (replace(_file(), inputs=[*_file().inputs] * 2), {}, "expected one, an image"),
        (replace(_file(), inputs=()), {}, "inputs: none"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(file: OnnxFile, said: Mapping[str, str], words: str) -> None:
    """The message has the file, what is in it, and what would fit."""
    with pytest.raises((BadFile, InvalidInput)) as refused:
        onnx_contract(file, said, 4)
    assert words in str(refused.value)
    assert "/nets/a.onnx" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scale", "expected some of size="),
        ("skale=1", "onnx 'skale'"),
        ("scale=0", "above 0"),
        ("scale=1/0", "above 0"),
        ("scale=nan", "expected numbers"),
        ("mean=1/2", "one number or three"),
        ("std=0.1/0/0.1", "above 0"),
        ("size=0x8", "expected WIDTHxHEIGHT"),
        ("kind=boxes", "logits or probabilities or ids"),
    ],
)
def test_flags_that_say_nothing_are_refused(text: str, words: str) -> None:
    """By name and value, before any file is opened."""
    with pytest.raises(InvalidInput) as refused:
        onnx_in(text)
    assert words in str(refused.value)


def test_a_file_is_read(tmp_path: Path) -> None:
    """What onnx wrote is read as it was, weights inside or beside it."""
    path = colour_network(
        tmp_path / "a.onnx", 4, size=("h", 96), ends=["Softmax"],
        metadata={"scale": "1", "classes": '["a"]'},
    )  # fmt: skip
    file = read_onnx(path)
    assert (file.producer, file.model_version, file.opset) == ("tests 3", 5, 17)
    assert file.inputs == [OnnxValue("image", "float32", (1, 3, "h", 96))]
    assert file.outputs == [OnnxValue("end0", "float32", (1, 4, "h", "w"))]
    assert (dict(file.operators), file.data_files) == ({"end0": "Softmax"}, ())
    assert file.metadata == {"scale": "1", "classes": '["a"]'}
    beside: dict[str, Any] = {"save_as_external_data": True, "size_threshold": 0}
    apart = [
        read_onnx(colour_network(
            tmp_path / name / "a.onnx", 4, weights=colour_weights(4) + add, location="a.data",
            **beside,
        ))
        for name, add in (("b", 0), ("c", 1), ("d", 0))
    ]  # fmt: skip
    assert [one.data_files for one in apart] == [("a.data",)] * 3
    digests = [one.sha256 for one in apart]
    assert digests[0] == digests[2] != digests[1]  # the weights count, wherever they lie


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """Cut short anywhere, of another kind, empty, a folder, or not there: an error by its name."""
    content = colour_network(tmp_path / "a.onnx", 4).read_bytes()
    path = tmp_path / "cut.onnx"
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(BadFile, match=r"cut\.onnx"):
            onnx_contract(read_onnx(path), {"scale": "1"}, 4)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    with pytest.raises(BadFile, match="no ONNX model"):
        read_onnx(path)
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(BadFile, match="no regular file"):
        read_onnx(tmp_path / "folder.onnx")
    with pytest.raises(NotFound):
        read_onnx(tmp_path / "none.onnx")


def test_weights_outside_its_folder_are_refused(tmp_path: Path) -> None:
    """By a path that leads out, by a link that does, and where the file is missing."""
    path = colour_network(
        tmp_path / "nets" / "a.onnx", 4, save_as_external_data=True, location="a.data",
        size_threshold=0,
    )  # fmt: skip
    (tmp_path / "a.data").write_bytes((path.parent / "a.data").read_bytes())
    model = onnx.load(path, load_external_data=False)
    for place in ("../a.data", "/etc/passwd", ""):
        model.graph.initializer[0].external_data[0].value = place or "link.data"
        (path.parent / "link.data").unlink(missing_ok=True)
        (path.parent / "link.data").symlink_to(tmp_path / "a.data")
        path.with_name("b.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(BadFile, match="make one file where onnx is installed"):
            read_onnx(path.with_name("b.onnx"))
    (path.parent / "a.data").unlink()
    with pytest.raises(BadFile, match="No such file"):
        read_onnx(path)


def _graph(nodes: Sequence[Any]) -> Any:
    image = helper.make_tensor_value_info("image", FLOAT, [1, 3, 8, 8])
    return helper.make_graph(nodes, "g", [image], [helper.make_tensor_value_info("y", FLOAT, None)])


def _field(number: int, content: bytes) -> bytes:
    """A field of a message, as bytes: onnx's own library refuses to write what is nested deeply."""
    size, length = b"", len(content)
    while length > 0x7F:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def _graphs_in_graphs(path: Path, depth: int) -> Path:
    """Write a model whose graph has a graph, so deep; the path."""
    graph = b""
    for _ in range(depth):
        graph = _field(1, _field(4, b"If") + _field(5, _field(6, graph)))
    path.write_bytes(b"\x08\x08" + _field(7, graph) + _field(8, b"\x10\x11"))
    return path


def _function(name: str, calls: Sequence[str]) -> Any:
    nodes = [helper.make_node(call, ["x"], ["x"], domain="own") for call in calls]
    opsets = [helper.make_opsetid("own", 1), helper.make_opsetid("", 17)]
    return helper.make_function("own", name, ["x"], ["x"], nodes, opsets)


def test_operators_without_code_of_ours_are_refused(tmp_path: Path) -> None:
    """A custom operator is named; a function of the file's own operators is none."""
    call = helper.make_node("Twice", ["image"], ["y"], domain="own")
    path = save(tmp_path / "a.onnx", _graph([call]), domains=["own"])
    with pytest.raises(BadFile, match=r"operator own.Twice, whose code"):
        read_onnx(path)
    body = helper.make_function(
        "own", "Twice", ["x"], ["z"], [helper.make_node("Add", ["x", "x"], ["z"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    assert read_onnx(save(path, _graph([call]), domains=["own"], functions=[body])).inputs
    node = helper.make_node("EPContext", ["image"], ["y"], domain="com.microsoft")
    with pytest.raises(BadFile, match="EPContext"):
        read_onnx(save(path, _graph([node]), domains=["com.microsoft"]))


def test_models_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    """Graphs in graphs, functions in a circle, and functions that multiply."""
    path = tmp_path / "a.onnx"
    assert read_onnx(_graphs_in_graphs(path, 30)).opset == 17
    with pytest.raises(BadFile, match="graphs within graphs"):
        read_onnx(_graphs_in_graphs(path, 5000))
    call = helper.make_node("f0", ["image"], ["y"], domain="own")
    circle = [_function("f0", ["f1"]), _function("f1", ["f0"])]
    with pytest.raises(BadFile, match="in a circle"):
        read_onnx(save(path, _graph([call]), domains=["own"], functions=circle))
    laughs = [_function(f"f{n}", [f"f{n + 1}"] * 10) for n in range(9)]
    laughs.append(_function("f9", []))
    with pytest.raises(BadFile, match="operators, functions' included"):
        read_onnx(save(path, _graph([call]), domains=["own"], functions=laughs))


def test_a_constant_with_weights_elsewhere_is_found(tmp_path: Path) -> None:
    """External data count wherever a tensor stands, not in initializers alone."""
    tensor = numpy_helper.from_array(np.zeros(3, np.float32), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../c.data")
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    with pytest.raises(BadFile, match="outside of its folder"):
        read_onnx(save(tmp_path / "a.onnx", _graph([node])))
