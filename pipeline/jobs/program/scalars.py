"""The numbers that a user's program logs by step: a curve of each name, and its last value.

The program appends a line for each to `metrics.jsonl` in its folder {job}:

    {"step": 120, "name": "loss", "value": 0.42}

Other fields say nothing here, and a line of a `rank` other than 0 is passed over. Steps of a name
ascend: a line of an earlier step, as an attempt writes that goes on from a checkpoint, takes the
place of what its name had from there on. A value that is no number (NaN, null) is no point.

What was read is kept in the job's folder, so that a line is parsed once, whichever process looks.
That file is as much a program's to change as its own are, and is trusted no more.
"""

import hashlib
import json
import os
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.beneath import open_beneath
from catalog.storage.bounded_file import parsed_json
from pipeline.jobs.program.made import opened_output
from pipeline.jobs.program.paths import ProgramPaths

LINES_FILE = "metrics.jsonl"

MOST_NAMES = 1_000
"""Names whose last values are known: the first ones."""
MOST_CURVES = 64
"""Names, of these, whose points are known."""
MOST_POINTS = 1_000
"""Points of a curve, an even number. Of more, every second one is dropped, again and again."""

_FORMAT = 1
_FORM = '{"step": 120, "name": "loss", "value": 0.42}'
_TYPES = (float, int, type(None))
"""Of a value; None stands for no number."""
_LONGEST_NAME = 200
_MOST_VALUE = 1e300
_LONGEST_LINE = 64 << 10
_PORTION = 1 << 20
_A_LOOK = 8 << 20
"""Bytes that one look reads of a file that is far ahead, 0.6 s of CPU; the next look goes on."""
_SAVED_EVERY = 64 << 10
_MOST_SAVED = 16 << 20
_HEAD = 256
"""Bytes by which a file is told from one that was written in its place."""


@dataclass
class Series:
    """The values of one name by step."""

    is_drawn: bool
    """Whether its points are kept."""
    steps: list[int] = field(default_factory=list)
    """Ascending: those of the points that are kept, and of the last one."""
    values: list[float] = field(default_factory=list)
    """The value of each."""
    last_step: int = 0
    """Of its last line."""
    last: float | None = None
    """Value of its last line; None for no number."""
    every: int = 1
    """Of so many points one is kept."""
    phase: int = 0
    """Points since the last one that is kept; the very last one goes with the next, unless 0."""

    def add(self, step: int, value: float | None) -> None:
        """Note a line."""
        self.last_step, self.last = step, value
        steps, values = self.steps, self.values
        if steps and step <= steps[-1]:
            begin = bisect_left(steps, step)
            del steps[begin:], values[begin:]
            self.phase = 0
        if value is None or not self.is_drawn:
            return
        if self.phase:
            del steps[-1], values[-1]
        self.phase = (self.phase + 1) % self.every if steps else 0
        steps.append(step)
        values.append(value)
        if len(steps) > MOST_POINTS and not self.phase:
            del steps[1::2], values[1::2]
            self.every *= 2

    @classmethod
    def from_json(cls, data: Any) -> "Series":
        """The series of these fields' values.

        Raises:
            ValueError: It is none; so with TypeError.
        """
        series = cls(*data)
        counts = (*series.steps, series.last_step, series.every, series.phase)
        numbers = series.values if series.last is None else (*series.values, series.last)
        if (
            not len(series.steps) == len(series.values) <= MOST_POINTS + 1
            or not all(_is_count(each) for each in counts)
            or not all(type(each) is float and _number_of(each) is not None for each in numbers)
            or sorted({*series.steps}) != series.steps
            or not series.phase < series.every
        ):
            raise ValueError("is no series")
        return series


@dataclass
class Scalars:
    """What was read of a program's `metrics.jsonl`."""

    inode: int
    """Of the file."""
    head: str = ""
    """Digest of its first bytes, as far as they were read."""
    offset: int = 0
    """Bytes that were read."""
    is_amid_line: bool = False
    """Whether the line in which they end was counted before its end."""
    lines: int = 0
    """Lines that were read, blank ones among them."""
    left_out: int = 0
    """Lines, of these, that say no number."""
    first_left_out: int = 0
    """Number of the first of these, from 1; 0 for none."""
    series: dict[str, Series] = field(default_factory=dict)
    """By name, in the order of their first lines."""

    @property
    def curves(self) -> Mapping[str, Series]:
        """The series that have points, by name."""
        return {name: series for name, series in self.series.items() if series.steps}

    @property
    def metrics(self) -> dict[str, Any]:
        """The newest step, and the last value by name; empty where nothing was logged."""
        if not self.series:
            return {}
        newest = max(series.last_step for series in self.series.values())
        return {"step": newest, **{name: series.last for name, series in self.series.items()}}

    @property
    def warnings(self) -> list[str]:
        """What the program's author should know of the file."""
        warnings = []
        if self.left_out:
            lines = "line is" if self.left_out == 1 else "lines are"
            warnings.append(
                f"{LINES_FILE}: {self.left_out:,} {lines} left out, line {self.first_left_out:,} "
                f"first; expected {_FORM}, and at most {MOST_NAMES:,} names"
            )
        if len(self.series) > MOST_CURVES:
            warnings.append(
                f"{LINES_FILE}: the first {MOST_CURVES} of {len(self.series):,} names have curves"
            )
        return warnings

    def read(self, file: BinaryIO, most_bytes: int | None) -> None:
        """Read on, to the last line that is whole; at most about so many bytes."""
        end = None if most_bytes is None else self.offset + most_bytes
        rest = b""
        while end is None or self.offset < end:
            portion = file.read(_PORTION)
            if not portion:
                break
            *lines, rest = (rest + portion).split(b"\n")
            for line in lines:
                self._note(line)
                self.offset += len(line) + 1
                self.is_amid_line = False
            if len(rest) > _LONGEST_LINE:
                self._note(b"-")
                self._pass_over(rest)
                rest = b""
        # A JSON object is whole with its last brace, whether a line ends after it or not.
        if rest and (self.is_amid_line or _row_of(rest) is not None):
            self._note(rest)
            self._pass_over(rest)

    def _pass_over(self, rest: bytes) -> None:
        self.offset += len(rest)
        self.is_amid_line = True

    def _note(self, line: bytes) -> None:
        if self.is_amid_line:
            return
        self.lines += 1
        if line.strip() and not self._takes(line):
            self.left_out += 1
            self.first_left_out = self.first_left_out or self.lines

    def _takes(self, line: bytes) -> bool:
        """Note what a line says; whether it says a number, or is another rank's."""
        row = _row_of(line)
        if row is None:
            return False
        if row.get("rank", 0) != 0:
            return True
        step, name, value = _count_of(row.get("step")), row.get("name"), row.get("value", "")
        if step is None or type(name) is not str or type(value) not in _TYPES:
            return False
        series = self.series.get(name)
        if series is None:
            if not _is_name(name) or len(self.series) == MOST_NAMES:
                return False
            series = self.series[name] = Series(len(self.series) < MOST_CURVES)
        series.add(step, _number_of(value))
        return True

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        series = {name: [*vars(each).values()] for name, each in self.series.items()}
        return {**vars(self), "series": series, "format": _FORMAT}

    @classmethod
    def from_json(cls, data: Any) -> "Scalars":
        """What `to_json` gave.

        Raises:
            ValueError: It is not; so with TypeError, KeyError and AttributeError.
        """
        values = {each.name: data[each.name] for each in fields(cls)}
        counts = (values[name] for name in ("offset", "lines", "left_out", "first_left_out"))
        series = {name: Series.from_json(each) for name, each in values["series"].items()}
        if (
            data["format"] != _FORMAT
            or not all(map(_is_count, counts))
            or len(series) > MOST_NAMES
            or not all(map(_is_name, series))
        ):
            raise ValueError("is no record of numbers that were read")
        return cls(**{**values, "series": series})


def scalars_of(folder: Path, *, whole: bool = False) -> Scalars:
    """The numbers that the program of a job has logged; none where it has no `metrics.jsonl`.

    Args:
        folder: The job's.
        whole: Read to the end of the file, however far that is.
    """
    try:
        with opened_output(folder, LINES_FILE) as file:
            scalars = _begun(_kept(folder), file)
            begin = scalars.offset
            scalars.read(file, None if whole else _A_LOOK)
            scalars.head = _digest(file, scalars.offset)
    except OSError:
        return Scalars(0)
    if scalars.offset - begin >= (1 if whole else _SAVED_EVERY):
        text = json.dumps(scalars.to_json(), separators=(",", ":"))
        with suppress(StorageError):  # who may only read this folder
            atomic_write(ProgramPaths(folder).scalars, text, fsync=False)
    return scalars


def _kept(folder: Path) -> Scalars:
    """What was read before; nothing where that is not known."""
    try:
        path = ProgramPaths(folder).scalars
        with open_beneath(os.path.realpath(folder), path.name) as file:
            content = file.read(_MOST_SAVED + 1)
        return Scalars.from_json(parsed_json(content[:_MOST_SAVED]))
    except (OSError, BadFile, ValueError, TypeError, KeyError, AttributeError):
        return Scalars(0)


def _begun(scalars: Scalars, file: BinaryIO) -> Scalars:
    """What was read of this file, which stands where that ends; nothing of another one."""
    status = os.fstat(file.fileno())
    is_other = scalars.inode != status.st_ino or status.st_size < scalars.offset
    if is_other or scalars.head != _digest(file, scalars.offset):
        scalars = Scalars(status.st_ino)
    file.seek(scalars.offset)
    return scalars


def _digest(file: BinaryIO, offset: int) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(min(_HEAD, offset))).hexdigest()


def _row_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None for anything else."""
    try:
        row = parsed_json(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _count_of(value: object) -> int | None:
    """The whole number that a number is; None for another, or one below zero or too large."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable()


def _number_of(value: object) -> float | None:
    """The number; None for one that cannot be drawn, and for no number."""
    if isinstance(value, int | float) and abs(value) <= _MOST_VALUE:
        return float(value)
    return None
