"""Annotations as every format gives them: classes, and frames of shapes in painting order."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from catalog.errors import BadFile, InvalidInput
from catalog.values import Problem

_COLOUR = re.compile("#[0-9a-fA-F]{6}")

UNLABELED = "unlabeled"
"""Name of the class of pixels that no shape covers; it is ignored."""


@dataclass(frozen=True)
class Category:
    """A class as the annotations have it."""

    name: str
    key: int | None = None
    """None where the format numbers none."""
    colour: str = ""
    """To draw it with, "#rrggbb"; empty where the format says none."""
    ignore: bool = False


@dataclass(frozen=True)
class Shape:
    """An area of a frame, and its class."""

    key: int
    kind: str
    """Of `ingest.conversion.paint.PAINTERS`."""
    data: Any
    """What the kind is painted by, as JSON."""
    is_crowd: bool = False


@dataclass(frozen=True)
class AnnotatedFrame:
    """A frame's annotations."""

    image: str
    """Path of its image below the images' folder."""
    size: tuple[int, int] | None
    """(W, H) [pixels]; None where the annotations do not say it."""
    shapes: Sequence[Shape]
    """The first lies below the others."""
    largest_first: bool = False
    """Paint crowds first, then larger areas before smaller ones, whatever their order."""


class Annotations(Protocol):
    """Annotations of some files, opened."""

    @property
    def categories(self) -> Sequence[Category]:
        """The classes."""

    @property
    def left_out(self) -> Counter[str]:
        """Shapes and frames that make no label, by what they are; grows while frames are read."""

    @property
    def expected(self) -> int:
        """Number of frames."""

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame, or what is wrong with it.

        Args:
            keys: Key of each class by its name, UNLABELED among them.
        """


class JsonFile:
    """The JSON file that was read last, and no other: annotations of a data set fill the memory."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._document: Any = None

    def read(self, path: Path) -> Any:
        """The document of a file.

        Raises:
            BadFile: It cannot be read, or is no JSON.
        """
        if path != self._path:
            self._path, self._document = None, None
            self._document = read_json(path)
            self._path = path
        return self._document


def read_json(path: Path) -> Any:
    """The document of a JSON file.

    Raises:
        BadFile: It cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror}", str(path)) from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path}: is no JSON: {error}", str(path)) from error


def files_of(sources: Sequence[Path], ending: str) -> list[tuple[Path, str]]:
    """Files that sources name, or that lie in folders which they name, with the path below these.

    Raises:
        InvalidInput: A source is not there, or none of its files ends so.
    """
    files: list[tuple[Path, str]] = []
    for source in sources:
        if source.is_dir():
            paths = sorted(path for path in source.rglob(f"*{ending}") if path.is_file())
            if not paths:
                raise InvalidInput(f"{source}: no file below it ends in {ending}")
            files += [(path, path.relative_to(source).as_posix()) for path in paths]
        else:
            files.append((one_file(source), source.name))
    return files


def one_file(source: Path) -> Path:
    """The file that a source is.

    Raises:
        InvalidInput: It is none.
    """
    if not source.is_file():
        what = "is a folder" if source.is_dir() else "no such file"
        raise InvalidInput(f"{source}: {what}; expected a file of annotations")
    return source


def part(document: Any, name: str, kind: type, where: str) -> Any:
    """A member of a JSON object.

    Raises:
        BadFile: It is missing or of another kind.
    """
    value = document.get(name) if isinstance(document, Mapping) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {list: "a list", dict: "an object", int: "a whole number", str: "a text"}
        raise BadFile(f"{where}: {name}: expected {words[kind]}, got {_short(value)}")
    return value


def size_in(document: Any, width: str, height: str, where: str) -> tuple[int, int] | None:
    """(W, H) of two members of a JSON object; None where neither is there.

    Raises:
        BadFile: They are no numbers of pixels.
    """
    if not isinstance(document, Mapping):
        raise BadFile(f"{where}: expected an object with {width} and {height}")
    if document.get(width) is None and document.get(height) is None:
        return None
    size = part(document, width, int, where), part(document, height, int, where)
    if min(size) < 1:
        raise BadFile(f"{where}: {size[0]} x {size[1]} pixels; expected at least 1 x 1")
    return size


def colour_of(value: Any) -> str:
    """The colour of three numbers or a text, as "#rrggbb"; empty of anything else."""
    if isinstance(value, list) and len(value) == 3:
        is_colour = all(type(each) is int and 0 <= each <= 255 for each in value)
        return "#{:02x}{:02x}{:02x}".format(*value) if is_colour else ""
    return value.lower() if isinstance(value, str) and _COLOUR.fullmatch(value) else ""


def points_of(points: Any, where: str) -> list[Any]:
    """``[x, y, x, y, ...]`` of ``[[x, y], ...]``.

    Raises:
        BadFile: They are no pairs.
    """
    if not isinstance(points, list) or not all(
        isinstance(point, list) and len(point) == 2 for point in points
    ):
        raise BadFile(f"{where}: expected points [[x, y], ...], got {_short(points)}")
    return [value for point in points for value in point]


def _short(value: Any) -> str:
    return "nothing" if value is None else ascii(value)[:60]
