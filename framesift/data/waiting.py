"""Files that a staging beside the job still brings: programs of users wait for them.

A job with `--start-after` hands its program a manifest and lists with staging.json beside them,
which says where the staging is. Waiting is that of Framesift's own training
(pipeline.cache.reading), imported where there is such a file.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from framesift.errors import BadFile
from framesift.whole import of_whole

if TYPE_CHECKING:
    from pipeline.cache.reading import Reading, ReadsThrough

STAGING_FILE = "staging.json"

Read = TypeVar("Read")


class Turn(int):
    """Index of a frame, and as which of its examples a rank reads it.

    It goes to the processes of a DataLoader with what they tell the staging.
    """

    reading: "Reading"

    def __new__(cls, index: int, reading: "Reading") -> "Turn":
        """The index of the example behind those that `reading` has read."""
        turn = super().__new__(cls, index)
        turn.reading = reading
        return turn

    def __reduce__(self) -> tuple[type["Turn"], tuple[int, "Reading"]]:
        """How another process gets it."""
        return type(self), (int(self), self.reading)


class Staging:
    """The staging beside the job of this program. Each process that gets it tells it of its own."""

    def __init__(self, file: Path) -> None:
        """That of a staging.json.

        Raises:
            BadFile: The file names no staging.
            MissingPackage: framesift-client is installed alone.
        """
        with of_whole("a staging beside the job"):
            import pipeline.cache.reading  # noqa: F401
        self._file = file
        self._of_process: tuple[int, ReadsThrough, str] | None = None
        self._of_order: ReadsThrough | None = None
        self._through()

    def __getstate__(self) -> Path:
        """The file alone: another process reads by itself."""
        return self._file

    def __setstate__(self, file: Path) -> None:
        """Take what `__getstate__` gave."""
        self._file, self._of_process, self._of_order = file, None, None

    @classmethod
    def beside(cls, folder: Path) -> "Staging | None":
        """The staging of a folder's staging.json; None where it has none.

        Raises:
            BadFile: The file names no staging.
        """
        file = folder / STAGING_FILE
        return cls(file.absolute()) if file.is_file() else None

    def wait_for(self, path: str) -> None:
        """Wait until a file is there, which was not.

        Raises:
            BadFile: It cannot be had, or the staging has ended.
        """
        from catalog.errors import FramesiftError

        try:
            self._through()[0].wait_for(path)
        except FramesiftError as error:
            raise BadFile(str(error)) from error

    def reads(self, turn: Turn) -> None:
        """Tell that this process reads an example, and needs none before it."""
        through, process = self._through()
        through.reads(replace(turn.reading, process=process))

    def rows_file(self, rows: Iterable[int]) -> str:
        """Name of the file by which the staging knows which rows of the manifest are read."""
        from catalog.errors import StorageError

        with suppress(StorageError):  # it has ended: what is there is read all the same
            return self._through()[0].keep_rows(rows)
        return ""

    def begin(self, reading: "Reading") -> None:
        """Tell in which order this rank reads from now on."""
        if self._of_order is None:
            self._of_order = self._opened()
        self._of_order.begin(reading)

    def _through(self) -> "tuple[ReadsThrough, str]":
        """The way to the staging of this process, and the process's name there."""
        of = self._of_process
        if of is None or of[0] != os.getpid():
            from pipeline.cache.beat import own_name
            from pipeline.cache.reading import Reading

            of = self._of_process = os.getpid(), self._opened(), own_name()
            # Who reads in no order that the staging knows says what it waits for, and no more.
            of[1].begin(Reading(0, 1, 1, 0, None, process=of[2]))
        return of[1:]

    def _opened(self) -> "ReadsThrough":
        from catalog.errors import FramesiftError
        from pipeline.cache.reading import ReadsThrough

        try:
            return ReadsThrough.at(Path(), self._file)
        except FramesiftError as error:
            raise BadFile(str(error)) from error


def awaited(read: Callable[[], Read], staging: Staging | None) -> Read:
    """What a function reads, once the files are there that it lacks.

    Raises:
        BadFile: As the function, or a file does not come.
    """
    while True:
        try:
            return read()
        except BadFile as error:
            lacks = error.__cause__
            if staging is None or not isinstance(lacks, FileNotFoundError):
                raise
            staging.wait_for(os.fsdecode(lacks.filename))
