"""ONNX files made for tests: small networks with known answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF, UINT8, INT64 = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT64,
)  # fmt: skip

RAW = {"scale": "1"}
"""Metadata of a network that takes pixels of 0 to 255 as they are."""

Weights = npt.NDArray[np.float32]


def colour_weights(n_classes: int) -> Weights:
    """(n_classes, 3) float32: a score of each class by a pixel's colour."""
    drawn = np.random.default_rng(7).normal(size=(n_classes, 3))
    return (drawn / 64).astype(np.float32)


def colour_network(
    path: Path,
    n_classes: int,
    *,
    size: Sequence[int | str] = (152, 240),
    dtype: int = FLOAT,
    layout: str = "nchw",
    ends: Sequence[str] = (),
    stride: int = 1,
    metadata: Mapping[str, str] = RAW,
    weights: Weights | None = None,
    more: Sequence[Any] = (),
    **saving: Any,
) -> Path:
    """Write a network that scores each pixel by its colour alone.

    Args:
        size: Of its input, names where it is free.
        dtype: Of its input.
        layout: Of its input; logits are NCHW in any case, unless "nhwc".
        ends: Operators behind the logits, such as Softmax or ArgMax.
        stride: By which its output is smaller than its input.
        metadata: Of the file.
        weights: As `colour_weights`, which are taken without.
        more: Further nodes, in front of the others.
    """
    weights = colour_weights(n_classes) if weights is None else weights
    nodes = list(more)
    value = "image"
    if dtype != FLOAT:
        nodes.append(helper.make_node("Cast", [value], ["float"], to=FLOAT))
        value = "float"
    if layout == "nhwc":
        nodes.append(helper.make_node("Transpose", [value], ["planes"], perm=[0, 3, 1, 2]))
        value = "planes"
    nodes.append(helper.make_node("Conv", [value, "w"], ["logits"], strides=[stride, stride]))
    value, axis = "logits", 1
    if layout == "nhwc":
        nodes.append(helper.make_node("Transpose", [value], ["last"], perm=[0, 2, 3, 1]))
        value, axis = "last", 3
    for number, operator in enumerate(ends):
        said: dict[str, Any] = {"axis": axis} if operator in ("ArgMax", "Softmax") else {}
        said |= {"keepdims": 0} if operator == "ArgMax" else {}
        nodes.append(helper.make_node(operator, [value], [f"end{number}"], **said))
        value = f"end{number}"
    is_ids = "ArgMax" in ends
    dims: list[int | str] = [1, 3, *size] if layout == "nchw" else [1, *size, 3]
    gives: list[int | str] = [1, n_classes, "h", "w"] if axis == 1 else [1, "h", "w", n_classes]
    graph = helper.make_graph(
        nodes,
        "colours",
        [helper.make_tensor_value_info("image", dtype, dims)],
        [
            helper.make_tensor_value_info(
                value, INT64 if is_ids else FLOAT, [1, "h", "w"] if is_ids else gives
            )
        ],
        [numpy_helper.from_array(weights[:, :, None, None], "w")],
    )
    return save(path, graph, metadata, **saving)


def save(path: Path, graph: Any, metadata: Mapping[str, str] = RAW, **saving: Any) -> Path:
    """Write a graph as a model of opset 17; the path."""
    domains = saving.pop("domains", ())
    functions = saving.pop("functions", ())
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(one, 1) for one in domains)]
    model = helper.make_model(
        graph,
        producer_name="tests",
        producer_version="3",
        opset_imports=opsets,
        ir_version=8,
        functions=functions,
    )
    model.model_version = 5
    helper.set_model_props(model, dict(metadata))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path, **saving)
    return path
