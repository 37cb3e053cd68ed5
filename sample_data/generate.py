"""Writes a set of generated road scenes in the layout of a data set."""

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path

import numpy as np

from catalog.errors import InvalidInput, StorageError
from catalog.storage.atomic_write import clear_parts, part_of
from sample_data.draw import draw_frame
from sample_data.drawn_layout import A2D2, REDUCTIONS, drawn_layout, reduced_frame
from sample_data.layout import scene_start
from sample_data.plan import plan_frame
from sample_data.styles import SCENES

GENERATOR_VERSION = 1
"""Counts up whenever the same seed gives other pictures than before."""

MANIFEST_FILE = "sample_data.json"
_STARTED_FILE = "sample_data.started.json"
_PART_SUFFIX = ".part"
_PLAIN = {"layout": A2D2, "reduced": 1}
"""What a record leaves out where it is so."""

Counts = dict[str, int]


@dataclass(frozen=True)
class SampleSet:
    """A set on disk."""

    root: Path
    """Its folder."""
    frames: int
    """Number of frames."""
    scenes: tuple[str, ...]
    """Folder names of the scenes, in the order of frame 0, 1, 2..."""
    made: bool
    """False when the set was already there."""
    seconds: float
    """Time taken."""


def write_sample_data(
    out: Path,
    *,
    frames: int,
    seed: int = 2026,
    layout: str = A2D2,
    reduced: int = 1,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> SampleSet:
    """Writes a set of frames, or finds that it is already there.

    The same frames and seed give the same pictures, whatever the number of workers. A set whose
    writing was cut short is completed: frames are written again, each file in one step.

    Args:
        out: Folder of the set; made if missing, else empty or holding this very set.
        frames: Number of frames, at least 1.
        seed: Start of everything random, at least 0.
        layout: Name of a preset, or path of a layout file.
        reduced: What width and height are divided by: 1, 2, 4 or 8.
        workers: Number of processes that draw, at least 1.
        progress: Called with (frames done, frames in all) after every frame.

    Returns:
        The set.

    Raises:
        InvalidInput: A number is out of range, the layout is none that can be drawn, or the folder
            holds something else.
        StorageError: The disk refuses to be written, or a drawing process was killed.
    """
    began = time.monotonic()
    _check_numbers(frames, seed, workers)
    if reduced not in REDUCTIONS:
        raise InvalidInput(f"reduced is {reduced}; expected 1, 2, 4 or 8")
    written_in = drawn_layout(layout)
    identity: dict[str, object] = {
        "generator_version": GENERATOR_VERSION, "seed": seed, "frames": frames,
        **_unlike_plain({"layout": layout, "reduced": reduced}),
    }  # fmt: skip
    scenes = tuple(
        scene_start(scene, seed).strftime("%Y%m%d_%H%M%S")
        for scene in range(min(frames, len(SCENES)))
    )
    try:
        if _already_there(out, identity):
            return SampleSet(out, frames, scenes, False, time.monotonic() - began)
        clear_parts(out.rglob(f"*{_PART_SUFFIX}"))
        _write(out / _STARTED_FILE, (json.dumps(identity) + "\n").encode())
        planned = (written_in.planned(plan_frame(index, seed)) for index in range(frames))
        for path, content in written_in.own_files(reduced, planned).items():
            _write(out / path, content)
        counts: dict[str, Counts] = {}
        order = _Order(out, seed, layout, reduced)
        for done, (label, pixels) in enumerate(_written(order, frames, workers), start=1):
            counts[label] = pixels
            if progress is not None:
                progress(done, frames)
        manifest = {**identity, "scenes": scenes, "counts": {"frames": counts}}
        _write(out / MANIFEST_FILE, (json.dumps(manifest, indent=1) + "\n").encode())
        (out / _STARTED_FILE).unlink()
    except OSError as error:
        raise _storage_error(out, error) from error
    return SampleSet(out, frames, scenes, True, time.monotonic() - began)


@dataclass(frozen=True)
class _Order:
    """What a drawing process is told of a set."""

    out: Path
    seed: int
    layout: str
    reduced: int


def _unlike_plain(identity: Mapping[str, object]) -> dict[str, object]:
    return {key: identity[key] for key, plain in _PLAIN.items()
            if identity.get(key, plain) != plain}  # fmt: skip


def _check_numbers(frames: int, seed: int, workers: int) -> None:
    """Raises InvalidInput for a number out of range."""
    for name, value, least in (("frames", frames, 1), ("seed", seed, 0), ("workers", workers, 1)):
        if value < least:
            raise InvalidInput(
                f"{name} is {value}; expected {least} or more: give a larger number."
            )


def _already_there(out: Path, identity: Mapping[str, object]) -> bool:
    """Return whether the folder holds this very set, complete.

    Raises:
        InvalidInput: It holds something else.
    """
    if not out.exists():
        return False
    if not out.is_dir():
        raise InvalidInput(f"{out} is a file; expected a folder: name another place for the set.")
    for name in (MANIFEST_FILE, _STARTED_FILE):
        present = _identity_in(out / name)
        if present is None:
            continue
        if present != identity:
            raise InvalidInput(
                f"{out} holds another sample set ({_described(present)}); expected an empty folder "
                f"or the set with {_described(identity)}: name another folder or remove this one."
            )
        return name == MANIFEST_FILE
    if any(not name.endswith(_PART_SUFFIX) for name in (entry.name for entry in out.iterdir())):
        raise InvalidInput(
            f"{out} holds other files; expected an empty folder or a sample set: "
            "name another folder."
        )
    return False


def _identity_in(file: Path) -> dict[str, object] | None:
    """Which set a file records; None without the file."""
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        numbers = {key: content[key] for key in ("generator_version", "seed", "frames")}
        return {**numbers, **_unlike_plain(content)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _described(identity: Mapping[str, object]) -> str:
    """An identity in words."""
    if not identity:
        return "its record cannot be read"
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in identity.items())


def _written(order: _Order, frames: int, workers: int) -> Iterator[tuple[str, Counts]]:
    """Writes all frames; yields label file name and pixel counts in the order of the frames."""
    if workers == 1 or frames == 1:
        for index in range(frames):
            yield _write_frame(order, index)
        return
    # Started afresh, not forked: the caller may hold threads, locks or a database connection.
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_end_with_parent
    ) as pool:
        try:
            indices = iter(range(frames))
            waiting = [
                pool.submit(_write_frame, order, index) for index in islice(indices, 4 * workers)
            ]
            while waiting:
                result = waiting.pop(0).result()
                for index in islice(indices, 1):
                    waiting.append(pool.submit(_write_frame, order, index))
                yield result
        except BrokenProcessPool as error:
            raise StorageError(
                f"a drawing process ended while writing {order.out}; expected it to finish: check "
                "free memory and call again with fewer workers.",
                str(order.out),
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Makes a drawing process end when the process that started it is killed."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _write_frame(order: _Order, index: int) -> tuple[str, Counts]:
    """Draws and writes one frame; returns its label's name and pixel counts."""
    layout = drawn_layout(order.layout)
    frame = layout.planned(plan_frame(index, order.seed))
    rng = np.random.default_rng(np.random.SeedSequence(frame.entropy))
    picture, ids = reduced_frame(*draw_frame(frame.spec, rng), order.reduced)
    for path, content in layout.files(frame, picture, ids).items():
        _write(order.out / path, content)
    return layout.label_name(frame), layout.count(ids)


def _write(file: Path, content: bytes) -> None:
    """Writes a file in one step: its name appears when all of it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with part_of(file, clear=False) as temporary:
        temporary.write_bytes(content)
        temporary.replace(file)


def _storage_error(out: Path, error: OSError) -> StorageError:
    """The error for a full or read-only disk, with what to do about it."""
    advice = (
        "free some space and call again"
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else "check that the folder can be written"
    )
    reason = error.strerror or str(error)
    return StorageError(
        f"{error.filename or out}: {reason}; expected to write the sample set: {advice}.",
        str(error.filename or out),
    )
