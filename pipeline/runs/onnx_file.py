"""An ONNX file as far as its own words say what it takes and gives; nothing of it is run. A leaf.

The file may be anybody's: weights are skipped, and what grows beyond reason is refused, such as
graphs within graphs and functions that call functions. A job is planned where no onnxruntime is
installed.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto (numbers of fields)
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from catalog.errors import BadFile, NotFound
from catalog.storage.beneath import open_beneath
from pipeline.runs.wire_format import (
    Fields,
    Malformed,
    Message,
    Span,
    message_of,
    number_of,
    text_of,
)

ENDING = ".onnx"

MOST_BYTES = (2 << 30) - 1
"""Of the file: Protocol Buffers' own limit."""
MOST_DATA_BYTES = 16 << 30
"""Of the files beside it that have its weights."""
_MOST_NODES = 200_000
"""Operators, those of functions counted wherever they are called."""
_MOST_DEPTH = 32
"""Of graphs within operators of graphs, and of functions that call functions."""
_MOST_ENTRIES = 4096
"""Entries of metadata, inputs, outputs, dimensions, and files beside it."""

_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
"""Operator sets that onnxruntime itself has."""

_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "string", 9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    16: "bfloat16",
}  # fmt: skip

_PASSES_ON = (
    "Identity", "Cast", "Transpose", "Squeeze", "Unsqueeze", "Reshape", "Resize", "Upsample",
)  # fmt: skip
"""Operators behind which values mean what they meant before."""


@dataclass(frozen=True)
class OnnxValue:
    """An input or output of a graph."""

    name: str
    """Its name."""
    dtype: str
    """As NumPy calls it; "no tensor" for anything else."""
    dims: tuple[int | str, ...] | None
    """Length of each dimension, or the name of one that is free; None where nothing is said."""

    @property
    def words(self) -> str:
        """The value, for people."""
        dims = "of unknown shape" if self.dims is None else f"[{', '.join(map(_short, self.dims))}]"
        return f"{_short(self.name)} {self.dtype} {dims}"


@dataclass(frozen=True)
class OnnxFile:
    """What an ONNX file says of itself."""

    path: Path
    """The file."""
    sha256: str
    """Digest of its bytes and, behind them, of the files of its weights in the order of names."""
    producer: str
    """Program and version that wrote it."""
    model_version: int
    """That it gives itself; 0 for none."""
    opset: int
    """Version of ONNX' own operators."""
    metadata: Mapping[str, str]
    """Its metadata_props."""
    inputs: Sequence[OnnxValue]
    """What must be given to it."""
    outputs: Sequence[OnnxValue]
    """What it gives."""
    operators: Mapping[str, str]
    """The operator that makes each output, those passed over that change no meaning."""
    data_files: Sequence[str] = ()
    """Names of files in its folder that have its weights, in order."""


@dataclass
class _Walk:
    """What was met on the way through the graphs of a file."""

    domains: set[str] = field(default_factory=set)
    data_files: set[str] = field(default_factory=set)
    nodes: int = 0
    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    """Operators by domain and name, each with how often it comes."""
    fields: Fields = field(default_factory=Fields)
    """Reads messages."""


def read_onnx(path: Path) -> OnnxFile:
    """What a file says of itself.

    Raises:
        NotFound: There is none.
        BadFile: It is no ONNX file, is cut short, too large or nested too deeply, needs operators
            of its author's own, or has weights outside its folder.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            raise BadFile(
                f"has {size:,} bytes; an ONNX file has at most {MOST_BYTES:,}: keep its weights in "
                "a file beside it (onnx.save with save_as_external_data=True)",
                str(path),
            )
        if not size:
            raise BadFile("is empty; expected an ONNX model", str(path))
        digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
        try:
            return _model(path, Span(file.fileno(), 0, size), digest)
        except Malformed as error:
            raise BadFile(f"is no ONNX model that can be run: it {error}", str(path)) from None


def data_files_of(path: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files that have a model's weights, each in its folder.

    Raises:
        BadFile: One is missing, no regular file, elsewhere, or they are too large together.
    """
    left = MOST_DATA_BYTES
    for name in names:
        with _opened_beside(path, name) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise BadFile(
                f"has more than {MOST_DATA_BYTES:,} bytes of weights beside it", str(path)
            )
        yield name, content


def _opened(path: Path) -> BinaryIO:
    try:
        return open_beneath(os.path.realpath(path.parent), path.name)
    except FileNotFoundError as error:
        raise NotFound("model", str(path), "expected an ONNX file") from error
    except OSError as error:
        if error.errno == errno.EXDEV:  # a user's own link: what it leads to is meant
            real = Path(os.path.realpath(path))
            return open_beneath(str(real.parent), real.name)
        reason = "is no regular file" if error.errno == errno.EINVAL else error.strerror
        raise BadFile(reason or "cannot be read", str(path)) from error


def _opened_beside(path: Path, name: str) -> BinaryIO:
    folder = os.path.realpath(path.parent)
    try:
        return open_beneath(folder, name)
    except OSError as error:
        reason = "leads out of its folder" if error.errno == errno.EXDEV else error.strerror
        raise BadFile(
            f"has weights in the file {_short(name)} beside it, which {reason or 'cannot be read'}"
            f"{_ONE_FILE}",
            str(path),
        ) from error


_ONE_FILE = (
    "; put it there, or make one file where onnx is installed: onnx.save(onnx.load(PATH), OUT)"
)


def _model(path: Path, content: Message, digest: "hashlib._Hash") -> OnnxFile:
    walk = _Walk()
    parts: dict[int, list[int | Message]] = {}
    for number, value in walk.fields(content):
        if number in _PARTS:
            parts.setdefault(number, []).append(value)
            _bounded(parts[number], _PARTS[number])
    if 7 not in parts or 1 not in parts:
        raise Malformed("has no graph; expected what torch.onnx.export writes")
    if 20 in parts:
        raise Malformed(
            "has a training graph; export it for inference (torch.onnx.export of model.eval())"
        )
    opsets = dict(_opset(message_of(value), walk.fields) for value in parts.get(8, ()))
    if not opsets:
        raise Malformed("names no operator set; is it cut short?")
    inputs, outputs, makers = _graph(message_of(parts[7][-1]), walk, 0, is_outermost=True)
    _check_calls(walk, [message_of(value) for value in parts.get(25, ())])
    for name in sorted(walk.data_files):
        _check_inside(name)
    names = tuple(sorted(walk.data_files))
    for _, data in data_files_of(path, names):
        digest.update(data)
    return OnnxFile(
        path,
        digest.hexdigest(),
        " ".join(text_of(parts[number][-1]) for number in (2, 3) if number in parts),
        number_of(parts.get(5, [0])[-1]),
        opsets.get("", opsets.get("ai.onnx", 0)),
        dict(_entry(message_of(value), walk.fields) for value in parts.get(14, ())),
        inputs,
        outputs,
        {value.name: _maker(value.name, makers) for value in outputs},
        names,
    )


_PARTS = {
    1: "format versions", 2: "producers", 3: "producers' versions", 5: "versions", 7: "graphs",
    8: "operator sets", 14: "metadata entries", 20: "training graphs", 25: "functions",
}  # fmt: skip
"""Fields of a model."""


def _graph(
    graph: Message, walk: _Walk, depth: int, *, is_outermost: bool = False
) -> tuple[list[OnnxValue], list[OnnxValue], dict[str, tuple[str, str]]]:
    """The inputs and outputs of a graph, and the operator and first input behind each value."""
    if depth > _MOST_DEPTH:
        raise Malformed(f"has graphs within graphs, more than {_MOST_DEPTH} deep")
    values: dict[int, list[OnnxValue]] = {11: [], 12: []}
    initializers: set[str] = set()
    makers: dict[str, tuple[str, str]] = {}
    for number, value in walk.fields(graph):
        if number == 1:
            operator, first, outputs = _node(message_of(value), walk, depth)
            if is_outermost:
                makers |= dict.fromkeys(outputs, (operator, first))
        elif number == 5:
            initializers.add(_tensor(message_of(value), walk))
        elif number == 15:
            initializers.add(_sparse(message_of(value), walk))
        elif number in values and is_outermost:
            values[number].append(_value(message_of(value), walk.fields))
            _bounded(values[number], "inputs or outputs")
    inputs = [value for value in values[11] if value.name not in initializers]
    return inputs, values[12], makers


def _node(node: Message, walk: _Walk, depth: int) -> tuple[str, str, list[str]]:
    """An operator's name, its first input, and its outputs."""
    operator, domain, first, outputs = "", "", "", list[str]()
    for number, value in walk.fields(node):
        if number == 1:
            first = first or text_of(value)
        elif number == 2:
            outputs.append(text_of(value))
        elif number == 4:
            operator = text_of(value)
        elif number == 5:
            _attribute(message_of(value), walk, depth)
        elif number == 7:
            domain = text_of(value)
    walk.nodes += 1
    _check_nodes(walk.nodes)
    call = ("" if domain == "ai.onnx" else domain, operator)
    walk.calls[call] = walk.calls.get(call, 0) + 1
    return operator, first, outputs


def _attribute(attribute: Message, walk: _Walk, depth: int) -> None:
    for number, value in walk.fields(attribute):
        if number in (5, 10):
            _tensor(message_of(value), walk)
        elif number in (6, 11):
            _graph(message_of(value), walk, depth + 1)
        elif number in (22, 23):
            _sparse(message_of(value), walk)


def _tensor(tensor: Message, walk: _Walk) -> str:
    """A tensor's name; where its numbers lie in a file, that is noted."""
    name, location = "", ""
    for number, value in walk.fields(tensor):
        if number == 8:
            name = text_of(value)
        elif number == 13:
            key, text = _entry(message_of(value), walk.fields)
            location = text if key == "location" else location
    if location:
        walk.data_files.add(location)
        _bounded(walk.data_files, "files of weights")
    return name


def _sparse(tensor: Message, walk: _Walk) -> str:
    names = [
        _tensor(message_of(value), walk)
        for number, value in walk.fields(tensor)
        if number in (1, 2)
    ]
    return names[0] if names else ""


def _value(info: Message, fields: Fields) -> OnnxValue:
    name, kind = "", None
    for number, value in fields(info):
        if number == 1:
            name = text_of(value)
        elif number == 2:
            kind = message_of(value)
    for number, value in () if kind is None else fields(kind):
        if number == 1:
            return OnnxValue(name, *_tensor_type(message_of(value), fields))
    return OnnxValue(name, "no tensor", None)


def _tensor_type(kind: Message, fields: Fields) -> tuple[str, tuple[int | str, ...] | None]:
    dtype, dims = "of unknown type", None
    for number, value in fields(kind):
        if number == 1:
            dtype = _DTYPES.get(number_of(value), f"type {number_of(value)}")
        elif number == 2:
            dims = tuple(
                _dim(message_of(one), fields) for key, one in fields(message_of(value)) if key == 1
            )
            _bounded(dims, "dimensions")
    return dtype, dims


def _dim(dim: Message, fields: Fields) -> int | str:
    for number, value in fields(dim):
        if number == 1:
            return number_of(value)
        if number == 2:
            return text_of(value) or "?"
    return "?"


def _opset(opset: Message, fields: Fields) -> tuple[str, int]:
    domain, version = "", 0
    for number, value in fields(opset):
        if number == 1:
            domain = text_of(value)
        elif number == 2:
            version = number_of(value)
    return domain, version


def _entry(entry: Message, fields: Fields) -> tuple[str, str]:
    key = text = ""
    for number, value in fields(entry):
        if number == 1:
            key = text_of(value)
        elif number == 2:
            text = text_of(value)
    return key, text


def _maker(name: str, makers: Mapping[str, tuple[str, str]]) -> str:
    """The operator that makes a value, behind those that change no meaning; empty for none."""
    operator = ""
    for _ in range(_MOST_DEPTH):
        if name not in makers:
            return operator
        operator, name = makers[name]
        if operator not in _PASSES_ON:
            return operator
    return operator


def _check_calls(walk: _Walk, functions: Sequence[Message]) -> None:
    """Accept operators that onnxruntime has, and functions of the file that end.

    Raises:
        Malformed: Others, functions that call each other in a circle, or too many operators.
    """
    bodies: dict[tuple[str, str], _Walk] = {}
    for function in functions:
        body, key = _function(function, walk.fields)
        bodies[key] = body
        walk.data_files |= body.data_files
    _bounded(bodies, "functions")
    costs: dict[tuple[str, str], int] = {}

    def cost(calls: Mapping[tuple[str, str], int], depth: int) -> int:
        if depth > _MOST_DEPTH:
            raise Malformed(
                f"has functions that call functions, more than {_MOST_DEPTH} deep or in a circle"
            )
        total = 0
        for key, times in calls.items():
            if key in bodies and key not in costs:
                costs[key] = 1 + cost(bodies[key].calls, depth + 1)
            total += times * costs.get(key, 1)
            _check_nodes(total)
        return total

    cost(walk.calls, 0)
    called = {*walk.calls, *(call for body in bodies.values() for call in body.calls)}
    own = sorted(
        f"{domain}.{name}"
        for domain, name in called - bodies.keys()
        if domain not in _DOMAINS or name == "EPContext"
    )
    if own:
        raise Malformed(
            f"needs the operator{'s' if len(own) > 1 else ''} {', '.join(map(_short, own[:3]))}, "
            "whose code is not onnxruntime's own and is not loaded; export it with ONNX' own "
            "operators (ai.onnx), or functions of these"
        )


def _function(function: Message, fields: Fields) -> tuple[_Walk, tuple[str, str]]:
    body, name, domain = _Walk(fields=fields), "", ""
    for number, value in fields(function):
        if number == 1:
            name = text_of(value)
        elif number == 7:
            _node(message_of(value), body, 0)
        elif number == 10:
            domain = text_of(value)
        elif number == 11:
            _attribute(message_of(value), body, 0)
    return body, (domain, name)


def _check_nodes(number: int) -> None:
    if number > _MOST_NODES:
        raise Malformed(f"has more than {_MOST_NODES:,} operators, functions' included")


def _check_inside(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        raise Malformed(
            f"has weights in the file {_short(name)}, which lies outside of its folder{_ONE_FILE}"
        )


def _bounded(several: Sized, what: str) -> None:
    if len(several) > _MOST_ENTRIES:
        raise Malformed(f"has more than {_MOST_ENTRIES:,} {what}")


def _short(name: object) -> str:
    """A name of the file, for a message: printable, and not long."""
    text = str(name)
    return (text if text.isprintable() else ascii(text))[:80]
