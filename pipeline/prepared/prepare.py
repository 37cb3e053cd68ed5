"""Making a prepared form: every frame decoded once, by a process for each core."""

import errno
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from catalog.errors import InvalidInput, StorageError
from catalog.storage.atomic_write import part_of
from catalog.storage.to_disk import to_disk, tree_to_disk
from framesift_start import start
from pipeline.cores import cores
from pipeline.manifest import Manifest
from pipeline.prepared.class_file import CLASSES_FILE, class_text
from pipeline.prepared.form import (
    ABOUT_FILE,
    FRAMES_FILE,
    About,
    checksum,
    form_key,
    form_path,
    prepared_folder,
)
from pipeline.prepared.frame_space import FrameSpace
from pipeline.prepared.kinds import (
    Form,
    FormFiles,
    created_files,
    files_of,
    known_bytes,
    made_bytes,
    opened_files,
    opened_form,
)
from pipeline.prepared.worker import BadFrames, Decoder
from pipeline.runs.size import FormSize, Size

_OTHER_FILES = 2
"""Files of a form beside those with its frames: its classes, and its description."""
_HEADER_BYTES = 4096
"""More than the headers of a form's files have, and what says what it is of [bytes]."""

BLOCK_FRAMES = 16
"""Frames that a process is given at once: a second's work."""

if TYPE_CHECKING:
    from pipeline.cache.reservation import Reservation

Progress = Callable[[int, int], None]
"""Called with frames made so far, and of how many."""


@dataclass(frozen=True)
class BadFrame:
    """A frame that cannot be decoded."""

    file: str
    reason: str


@dataclass(frozen=True)
class Prepared:
    """The result of preparing a dataset."""

    folder: Path
    size: FormSize
    frames: int
    decoded: int
    """Frames that were decoded now."""
    bytes: int
    bad: tuple[BadFrame, ...]
    """Frames that cannot be decoded, in the dataset's order."""


def prepare(
    manifest_folder: Path,
    size: FormSize,
    *,
    folder: Path | None = None,
    processes: int = 0,
    progress: Progress | None = None,
    reservation: "Reservation | None" = None,
) -> Prepared:
    """Make the form of a manifest's frames, or what an earlier one lacks.

    Frames that an earlier form has undamaged are copied from it. The form is written to a
    temporary folder, is on the disk as a whole, and takes its name then; of two that are made at
    once the later stays.

    Args:
        manifest_folder: The manifest, whose files lie on this machine.
        folder: That of all forms; beside the staged manifest by default.
        processes: That decode; 0 for one for each core.
        progress: Called after each block.
        reservation: In the cache, for a lease on the manifest; without one nothing is evicted.

    Returns:
        What was made. Frames that cannot be decoded are no error here: whoever reads them decodes
        their files, and finds the error then.

    Raises:
        InvalidInput: It has no frames, or does not know the versions of its files.
        StorageError: The disk refuses, or has too little space.
    """
    manifest = Manifest.read(manifest_folder)
    header = manifest.header
    folder = folder or prepared_folder(manifest_folder)
    key = form_key(manifest, size)
    if folder is None or key is None or not len(manifest):
        raise InvalidInput(
            f"dataset {header.name}@{header.version} cannot be prepared: "
            + ("it has no frames" if not len(manifest) else "stage it first (framesift stage)")
        )
    target = form_path(folder, key, size)
    earlier = opened_form(manifest, size, folder)
    missing = _missing(manifest, earlier)
    classes = class_text(header.dataset_classes)
    if earlier is not None and not missing:
        size_bytes = made_bytes(earlier.frames, size)
        return Prepared(target, size, len(manifest), 0, size_bytes, ())
    known = known_bytes(len(manifest), size, earlier)
    space = known + len(classes.encode()) + _HEADER_BYTES
    many = files_of(size) + _OTHER_FILES
    if reservation is not None:
        reservation.extend(space, many)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part_of(target, is_folder=True) as temporary_folder:
            files = created_files(temporary_folder, manifest, size)
            if earlier is not None:
                _copy(earlier, files, set(missing))
            if reservation is not None:
                reservation.arrived(space, many)  # its space is taken now, and counts as such
            # At full size how much a frame takes is known when it is compressed.
            coming = None if isinstance(size, Size) else FrameSpace(manifest, reservation)
            bad = _decode_all(
                manifest, temporary_folder, missing, size, processes, progress, coming
            )
            frames = np.load(temporary_folder / FRAMES_FILE, allow_pickle=False)
            name = f"{header.name}@{header.version}"
            sides = (size.height_px, size.width_px) if isinstance(size, Size) else (None, None)
            frames_crc = checksum(frames.view(np.uint8))
            about = About(key, sides[0], sides[1], len(manifest), frames_crc, name)
            (temporary_folder / CLASSES_FILE).write_text(classes, encoding="utf-8")
            (temporary_folder / ABOUT_FILE).write_text(about.to_json(), encoding="utf-8")
            tree_to_disk(temporary_folder)
            _replace(temporary_folder, target)
            to_disk(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        more = "" if isinstance(size, Size) else " and space for its frames"
        raise StorageError(
            f"{target}: {reason}; the form needs {known:,} bytes{more}", str(target)
        ) from error
    named = tuple(BadFrame(*why) for _, why in sorted(bad.items()))
    prepared = len(missing) - len(bad)
    return Prepared(target, size, len(manifest), prepared, made_bytes(frames, size), named)


def _missing(manifest: Manifest, earlier: Form | None) -> list[int]:
    """Rows that an earlier form has not, or has damaged."""
    if earlier is None:
        return list(range(len(manifest)))
    labels = manifest.frames["label"].is_valid().to_pylist()
    return [
        row for row, labelled in enumerate(labels) if not earlier.is_intact(row, labelled=labelled)
    ]


def _copy(earlier: Form, files: FormFiles, missing: set[int]) -> None:
    for row in range(len(files.frames)):
        if row not in missing:
            files.copy(row, earlier)


def _decode_all(
    manifest: Manifest,
    temporary_folder: Path,
    rows: Sequence[int],
    size: FormSize,
    processes: int,
    progress: Progress | None,
    space: FrameSpace | None,
) -> BadFrames:
    """Decode rows into the files below ``temporary_folder``; those that cannot be."""
    ahead = iter(rows)
    blocks = list(iter(lambda: list(islice(ahead, BLOCK_FRAMES)), []))
    bad: BadFrames = {}
    done = 0
    with ExitStack() as stack:
        decoders: SimpleQueue[Decoder | _DecodingProcess] = SimpleQueue()
        count = min(len(blocks), processes or cores())
        if count <= 1:  # the few frames are decoded before another process has started
            files = opened_files(temporary_folder, manifest, size)
            decoders.put(Decoder(manifest, files, size))
        else:
            for _ in range(count):
                decoders.put(
                    stack.enter_context(_DecodingProcess(manifest, temporary_folder, size))
                )

        def decode(block: Sequence[int]) -> tuple[int, BadFrames]:
            decoder = decoders.get()
            try:
                with nullcontext() if space is None else space.of(block):
                    return len(block), decoder.decode(block)
            finally:
                decoders.put(decoder)

        pool = stack.enter_context(ThreadPoolExecutor(max(1, count), thread_name_prefix="prepare"))
        futures = [pool.submit(decode, block) for block in blocks]
        try:
            for future in as_completed(futures):
                frames, left_out = future.result()
                bad |= left_out
                done += frames
                if progress is not None:
                    progress(done, len(rows))
        finally:
            for future in futures:
                future.cancel()
    return bad


def _replace(temporary_folder: Path, target: Path) -> None:
    """Give a folder its name; processes that have mapped an earlier one keep that."""
    try:
        temporary_folder.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        with part_of(target, is_folder=True, clear=False) as old:
            target.rename(old)
            temporary_folder.rename(target)


class _DecodingProcess:
    """A pipeline.prepared.worker for one block of rows at a time; it ends with the `with` block."""

    def __init__(self, manifest: Manifest, folder: Path, size: FormSize) -> None:
        """Start one for a manifest that was read from disk, into the files below ``folder``."""
        command = [sys.executable, *start("pipeline.prepared.worker")]
        self._process = subprocess.Popen(
            [*command, str(manifest.folder), str(folder), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._input = cast("IO[str]", self._process.stdin)
        self._output = cast("IO[str]", self._process.stdout)

    def __enter__(self) -> "_DecodingProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def decode(self, rows: Sequence[int]) -> BadFrames:
        """Have rows decoded; those that cannot be.

        Raises:
            StorageError: The process cannot go on, or has ended.
        """
        try:
            self._input.write(" ".join(map(str, rows)) + "\n")
            self._input.flush()
            line = self._output.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise StorageError(
                f"a process that decodes frames ended with status {self._process.wait()}: is there "
                "enough memory? Prepare with fewer --workers"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise StorageError(answer["error"])
        return {int(row): (file, reason) for row, (file, reason) in answer["bad"].items()}
