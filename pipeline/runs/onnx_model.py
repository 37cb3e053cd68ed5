"""What a network in an ONNX file takes and gives: from the file, its metadata, and its user.

``onnx.json`` in a job's folder keeps it for the job's programs. A leaf.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, InvalidInput
from catalog.storage.bounded_file import read_description
from pipeline.runs.onnx_file import OnnxFile, OnnxValue
from pipeline.runs.size import Size

ONNX_MODEL_FILE = "onnx.json"

NCHW, NHWC = "nchw", "nhwc"
RGB, BGR = "rgb", "bgr"
LOGITS, PROBABILITIES, IDS = "logits", "probabilities", "ids"

_CHOICES: Mapping[str, Sequence[str]] = {
    "layout": (NCHW, NHWC),
    "channels": (RGB, BGR),
    "kind": (LOGITS, PROBABILITIES, IDS),
}
KEYS = ("size", "scale", "mean", "std", "channels", "layout", "output", "kind")
"""Names of what a file's metadata and its user may say, flags before metadata."""

EXPECTED = (
    "expected some of size=WIDTHxHEIGHT, scale=1/255, mean=R/G/B, std=R/G/B, channels=rgb|bgr, "
    "layout=nchw|nhwc, output=NAME, kind=logits|probabilities|ids"
)

_INPUT_DTYPES = ("float32", "float16", "uint8")
_SCORE_DTYPES = ("float32", "float16", "float64")
_ID_DTYPES = ("int64", "int32", "uint8", "int16", "uint16", "int8", "uint32", "uint64")
_MOST_BYTES = 4 << 20
_LONGEST = 256


@dataclass(frozen=True, kw_only=True)
class OnnxInput:
    """The image that a network takes."""

    name: str
    """Of the graph's input."""
    dtype: str
    """float32, float16 or uint8."""
    layout: str
    """NCHW or NHWC."""
    height_px: int
    width_px: int
    channels: str
    """RGB or BGR."""
    scale: float
    """A value of 0 to 255 is multiplied by it first,"""
    mean: tuple[float, float, float]
    """then this is taken off, in the order of ``channels``,"""
    std: tuple[float, float, float]
    """and the rest divided by this."""


@dataclass(frozen=True, kw_only=True)
class OnnxOutput:
    """What a network gives."""

    name: str
    """Of the graph's output."""
    kind: str
    """LOGITS, PROBABILITIES or IDS."""
    is_said: bool
    """Whether file or user say so: else it is what is usual."""
    class_axis: int | None
    """Dimension of the classes, of IDS one of length 1; None where the file leaves it open."""


@dataclass(frozen=True, kw_only=True)
class OnnxModel:
    """A network in an ONNX file, and what it was made of."""

    model: str
    """Its name."""
    file: str
    """Absolute path of the file."""
    sha256: str
    """As OnnxFile's."""
    producer: str
    """As OnnxFile's."""
    version: int
    """As OnnxFile's model_version."""
    opset: int
    """As OnnxFile's."""
    data_files: Sequence[str]
    """As OnnxFile's."""
    input: OnnxInput
    output: OnnxOutput
    classes: Sequence[str]
    """Names of its classes; a class id is a position in this list."""
    class_map: Mapping[str, Any] | None = None
    """By which it merges label classes; None where each is a class."""
    info: Mapping[str, str] = field(default_factory=dict)
    """What its user says of it: a commit, a version."""

    def as_json(self) -> dict[str, Any]:
        """The content of onnx.json."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """Of how it is fed and read: the same file fed otherwise predicts otherwise."""
        text = json.dumps([asdict(self.input), asdict(self.output), list(self.classes)])
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def read(cls, folder: Path) -> "OnnxModel | None":
        """The network that a folder describes; None where it describes none.

        Raises:
            BadFile: The description is damaged.
        """
        return read_description(folder / ONNX_MODEL_FILE, _MOST_BYTES, cls._of_json)

    @classmethod
    def _of_json(cls, data: dict[str, Any]) -> "OnnxModel":
        image = data["input"]
        image |= {name: tuple(image[name]) for name in ("mean", "std")}
        data |= {"input": OnnxInput(**image), "output": OnnxOutput(**data["output"])}
        data |= {name: tuple(data[name]) for name in ("classes", "data_files")}
        return cls(**data)


def onnx_in(text: str) -> dict[str, str]:
    """What NAME=VALUE,... says of an ONNX file's input and output.

    Raises:
        InvalidInput: A name or value cannot be.

    >>> onnx_in("scale=1/255,mean=0.485/0.456/0.406")
    {'scale': '1/255', 'mean': '0.485/0.456/0.406'}
    """
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(sign and value for _, sign, value in pairs):
        raise InvalidInput(f"--onnx {text}: {EXPECTED}")
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    check_onnx(settings)
    return settings


def check_onnx(settings: Mapping[str, str]) -> None:
    """Accept what is said of an ONNX file's input and output.

    Raises:
        InvalidInput: A name or value cannot be.
    """
    if unknown := [name for name in settings if name not in KEYS]:
        raise InvalidInput(f"onnx {unknown[0][:40]!a}: {EXPECTED}")
    for name, value in settings.items():
        if not isinstance(value, str) or len(value) > _LONGEST:
            raise InvalidInput(f"onnx {name}: {EXPECTED}")
        _read(name, value)


def _read(name: str, value: str) -> Any:
    """The value of one of KEYS.

    Raises:
        InvalidInput: It cannot be.
    """
    text = value.strip()
    if name == "size":
        return Size.parse(text)
    if name == "output":
        return text
    if name in _CHOICES:
        if text.lower() not in _CHOICES[name]:
            raise InvalidInput(f"onnx {name}={text[:40]}: expected {' or '.join(_CHOICES[name])}")
        return text.lower()
    if name == "scale":
        above, sign, below = text.partition("/")
        scale = _numbers(name, text, [above, below] if sign else [above])
        if 0 in scale:
            raise InvalidInput(f"onnx scale={text[:40]}: expected a number above 0, such as 1/255")
        return scale[0] / scale[1] if sign else scale[0]
    numbers = _numbers(name, text, text.strip("[]()").replace(",", "/").split("/"))
    if len(numbers) not in (1, 3):
        raise InvalidInput(f"onnx {name}={text[:60]}: expected one number or three, R/G/B")
    if name == "std" and min(numbers) <= 0:
        raise InvalidInput(f"onnx std={text[:60]}: expected numbers above 0")
    return (numbers * 3)[:3]


def _numbers(name: str, text: str, parts: Sequence[str]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(piece) for piece in parts)
    except ValueError:
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"onnx {name}={text[:60]}: expected numbers")
    return numbers


def onnx_contract(
    file: OnnxFile, settings: Mapping[str, str], n_classes: int
) -> tuple[OnnxInput, OnnxOutput]:
    """What a network takes and gives.

    Args:
        said: By its user, of KEYS; counts before the file's metadata.
        n_classes: Classes that its output must tell apart.

    Raises:
        BadFile: Input or output are none that frames can be put through.
        InvalidInput: What is said contradicts the file, or something must be said.
    """
    metadata = {name.lower(): value for name, value in file.metadata.items()}
    values = {}
    for name in KEYS:
        if name in settings:
            values[name] = _read(name, settings[name])
        elif name in metadata:
            try:
                values[name] = _read(name, metadata[name])
            except InvalidInput as error:
                raise BadFile(f"its metadata: {error}", str(file.path)) from error
    image = _input(file, values)
    return image, _output(file, values, image, n_classes)


def _input(file: OnnxFile, values: Mapping[str, Any]) -> OnnxInput:
    if len(file.inputs) != 1:
        raise _unfit(file, "inputs", file.inputs, "one, an image")
    (image,) = file.inputs
    fits = "float32, float16 or uint8 [1, 3, H, W] or [1, H, W, 3], batch and sizes maybe free"
    dims = image.dims
    if image.dtype not in _INPUT_DTYPES or dims is None or len(dims) != 4:
        raise _unfit(file, "the input", [image], fits)
    if isinstance(dims[0], int) and dims[0] != 1:
        raise _unfit(file, "the input", [image], f"a batch of 1, or a free one: {fits}")
    layout = _layout(file, image, dims, values, fits)
    height, width = (dims[2], dims[3]) if layout == NCHW else (dims[1], dims[2])
    size = _size(file, image, (height, width), values)
    if image.dtype == "uint8":
        if changed := [name for name in ("scale", "mean", "std") if name in values]:
            raise InvalidInput(
                f"{file.path}: onnx {changed[0]}: its input {image.words} takes pixels of 0 to 255 "
                "as they are; leave it out"
            )
    elif not {"scale", "mean", "std"} & values.keys():
        raise InvalidInput(
            f"{file.path}: its input is {image.words}, and neither its metadata nor --onnx says "
            "what pixels of 0 to 255 become; give --onnx scale=1 for these as they are, "
            "scale=1/255 for 0 to 1, or mean=R/G/B,std=R/G/B with it, such as "
            "scale=1/255,mean=0.485/0.456/0.406,std=0.229/0.224/0.225"
        )
    return OnnxInput(
        name=image.name,
        dtype=image.dtype,
        layout=layout,
        height_px=size.height_px,
        width_px=size.width_px,
        channels=values.get("channels", RGB),
        scale=values.get("scale", 1.0),
        mean=values.get("mean", (0.0, 0.0, 0.0)),
        std=values.get("std", (1.0, 1.0, 1.0)),
    )


def _layout(
    file: OnnxFile,
    image: OnnxValue,
    dims: Sequence[int | str],
    values: Mapping[str, Any],
    fits: str,
) -> str:
    can_be = [
        layout
        for layout, axis in ((NCHW, 1), (NHWC, 3))
        if dims[axis] == 3 or isinstance(dims[axis], str)
    ]
    surely = [layout for layout, axis in ((NCHW, 1), (NHWC, 3)) if dims[axis] == 3]
    layout = values.get("layout")
    if layout is not None:
        if layout not in can_be:
            raise InvalidInput(
                f"{file.path}: onnx layout={layout}: its input is {image.words}; "
                f"{' or '.join(can_be) or 'neither layout'} fits"
            )
        return str(layout)
    if not can_be:
        raise _unfit(file, "the input", [image], f"three channels: {fits}")
    choice = surely or can_be
    if len(choice) > 1:
        raise InvalidInput(
            f"{file.path}: its input is {image.words}, whose channels may be its second or its "
            "last dimension; give --onnx layout=nchw or layout=nhwc"
        )
    return choice[0]


def _size(
    file: OnnxFile,
    image: OnnxValue,
    sides: tuple[int | str, int | str],
    values: Mapping[str, Any],
) -> Size:
    size: Size | None = values.get("size")
    if size is None:
        if not all(isinstance(side, int) and side > 0 for side in sides):
            raise InvalidInput(
                f"{file.path}: its input is {image.words}, whose size is free; say at which it is "
                "run: --onnx size=WIDTHxHEIGHT"
            )
        return Size.parse(f"{sides[1]}x{sides[0]}")
    for side, chosen in zip(sides, (size.height_px, size.width_px), strict=True):
        if isinstance(side, int) and side != chosen:
            raise InvalidInput(
                f"{file.path}: onnx size={size}: its input is {image.words}, of fixed size; leave "
                "size out, or export it with free sizes"
            )
    return size


def _output(
    file: OnnxFile, values: Mapping[str, Any], image: OnnxInput, n_classes: int
) -> OnnxOutput:
    output = _one_output(file, values)
    fits = (
        f"logits or probabilities [1, {n_classes}, h, w] or [1, h, w, {n_classes}] (float32, "
        f"float16 or float64) of the {n_classes} classes, or class ids [1, h, w] of integers"
    )
    kind, is_said = values.get("kind"), "kind" in values
    operator = file.operators.get(output.name, "")
    if kind is None:
        kind = LOGITS
        if output.dtype in _ID_DTYPES:
            kind, is_said = IDS, True
        elif operator == "Softmax":
            kind, is_said = PROBABILITIES, True
        elif operator == "Sigmoid":
            raise InvalidInput(
                f"{file.path}: its output {output.words} comes of Sigmoid, a probability of each "
                "class by itself; export what is before it, or give --onnx kind=logits to have "
                "the largest count"
            )
    dtypes = _ID_DTYPES if kind == IDS else _SCORE_DTYPES
    if output.dtype not in dtypes:
        raise _unfit(file, "the output", [output], fits)
    if output.dims is None:
        return OnnxOutput(name=output.name, kind=kind, is_said=is_said, class_axis=None)
    classes = 1 if kind == IDS else n_classes
    axes = _class_axes(output.dims, classes, kind, 1 if image.layout == NCHW else 3)
    if axes is None or (isinstance(output.dims[0], int) and output.dims[0] != 1):
        raise _unfit(file, "the output", [output], fits)
    axis = axes[0] if len(axes) == 1 else None
    if len(axes) > 1 and all(output.dims[one] == classes for one in axes):
        axis = 1 if image.layout == NCHW else 3
    return OnnxOutput(name=output.name, kind=kind, is_said=is_said, class_axis=axis)


def _one_output(file: OnnxFile, values: Mapping[str, Any]) -> OnnxValue:
    named = values.get("output")
    if named is not None:
        outputs = [one for one in file.outputs if one.name == named]
        if not outputs:
            raise InvalidInput(
                f"{file.path}: onnx output={named[:80]}: it has "
                f"{', '.join(one.words for one in file.outputs[:8])}; name one of these"
            )
        return outputs[0]
    if len(file.outputs) != 1:
        expected = "one; name it: --onnx output=NAME" if file.outputs else "one"
        raise _unfit(file, "outputs", file.outputs, expected)
    return file.outputs[0]


def _class_axes(dims: Sequence[int | str], classes: int, kind: str, usual: int) -> list[int] | None:
    """Dimensions that may be the classes'; none in [1, h, w]; None where the output cannot be.

    Args:
        usual: That of the input's channels: where it has another length, no free one is meant.
    """
    if kind == IDS and len(dims) == 3:
        return []
    if len(dims) != 4:
        return None
    axes = [axis for axis in (1, 3) if dims[axis] == classes]
    if axes or not isinstance(dims[usual], str):
        return axes or None
    return [axis for axis in (1, 3) if isinstance(dims[axis], str)]


def _unfit(file: OnnxFile, what: str, values: Sequence[OnnxValue], fits: str) -> BadFile:
    words = ", ".join(one.words for one in values[:8]) or "none"
    return BadFile(f"{what}: {words}; expected {fits}", str(file.path))
