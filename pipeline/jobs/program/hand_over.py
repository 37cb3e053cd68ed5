"""The stage of a job that writes what a user's program is handed.

python -m pipeline.jobs.program.hand_over FOLDER --manifest M [--staging FILE [--waits]]
    [--split S] [--prepare WIDTHxHEIGHT|full] [--checkpoint NAME@STEP PATH]
    --give files --give files:train --give classes ...
"""

import argparse
import json
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from catalog.errors import BadFile, FramesiftError, StorageError
from catalog.storage.atomic_write import atomic_write
from pipeline.cache.reading import ReadsThrough
from pipeline.datasets.export import export_text
from pipeline.jobs.program.checkpoints import copy_checkpoint, note_checkpoint
from pipeline.jobs.program.command_line import FILES, MANIFEST
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import read_json
from pipeline.manifest import Manifest
from pipeline.prepared.before_training import prepare_or_report
from pipeline.prepared.class_file import write_class_file
from pipeline.prepared.form import ABOUT_FILE, HAS_IMAGE
from pipeline.prepared.kinds import Form, opened_form
from pipeline.runs.size import form_size

ROWS_FILE, NAMES_FILE = "rows.npy", "names.txt"
STAGING_FILE = "staging.json"
"""Name of the file beside a list or manifest by which framesift.data.waiting finds a staging."""


def main(arguments: Sequence[str]) -> int:
    """Write everything; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        _hand_over(options)
    except FramesiftError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or options.folder}: {error.strerror}\n")
        return 1
    return 0


def _hand_over(options: argparse.Namespace) -> None:
    paths = ProgramPaths(options.folder)
    paths.output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(paths.input, ignore_errors=True)  # of an earlier attempt
    paths.input.mkdir()
    folder = ReadsThrough.at(options.manifest, options.staging).manifest
    manifest = Manifest.read(folder)
    frames = manifest.split(options.split)
    if not options.waits:
        _need_files(frames)
    for pair in options.give:
        name, _, split = pair.partition(":")
        if name == FILES:
            listed = manifest.split(split) if split else frames
            text = "".join(export_text(listed, (), "files", with_labels=True))
            atomic_write(paths.files(split or None), text)
        elif name == MANIFEST:
            manifest.write(paths.manifest)
            if options.waits:
                _hand_over_staging(paths.manifest, options.staging)
    if options.waits:
        _hand_over_staging(paths.input, options.staging)
    write_class_file(paths.input, manifest.header.dataset_classes, manifest.header.roots)
    if options.prepare is not None:
        size = form_size(options.prepare)
        prepare_or_report(folder, size, options.job, options.user)
        form = opened_form(manifest, size)
        if form is None:
            raise StorageError(
                f"the frames are not prepared at {size.words}; the lines above say why", str(folder)
            )
        hand_over_form(paths.prepared, form, frames)
    atomic_write(paths.rendezvous, json.dumps({"port": _free_port()}))
    first = None
    if options.checkpoint is not None:
        named, path = options.checkpoint
        first = copy_checkpoint(options.folder, named, Path(path))
    goes_on = note_checkpoint(options.folder, first)
    sys.stdout.write(f"{len(frames):,} frames are handed over in {paths.input}{goes_on}\n")


def _hand_over_staging(folder: Path, staging: Path) -> None:
    """Have framesift.data find the staging that brings the files of a folder's list or manifest."""
    atomic_write(folder / STAGING_FILE, json.dumps({"place": read_json(staging)["place"]}))


def _need_files(frames: Manifest) -> None:
    """See that every file is on this machine: this program waits for none.

    Raises:
        BadFile: One is not.
    """
    for file in (*frames.images(), *frames.labels()):
        if file is not None and not Path(file.path).is_file():
            raise BadFile(
                "is not on this machine; stage the dataset (framesift stage), with a cache that "
                "holds all of it",
                file.path,
            )


def hand_over_form(folder: Path, form: Form, frames: Manifest) -> None:
    """Make a folder that shows the rows of some frames in a prepared form.

    Args:
        folder: To be made: links to the form's files, and which rows of them are meant.
        form: Of the frames' dataset.
        frames: The frames.

    Raises:
        BadFile: The form lacks one, whose row in the arrays is zero.
    """
    fkeys, splits = (frames.frames[name].to_pylist() for name in ("fkey", "split"))
    rows = np.array([form.fkeys[fkey] for fkey in fkeys], np.int64)
    for fkey, has in zip(fkeys, form.frames["has"][rows].tolist(), strict=True):
        if not has & HAS_IMAGE:
            raise BadFile(
                f"frame {fkey} cannot be decoded; mend its files (framesift cache verify), or "
                "leave out --prepare",
                str(form.folder),
            )
    folder.mkdir()
    for name in form.FILES:
        (folder / name).symlink_to(form.folder / name)
    write_class_file(folder, frames.header.dataset_classes)
    np.save(folder / ROWS_FILE, rows, allow_pickle=False)
    names = "".join(f"{split}\t{fkey}\n" for split, fkey in zip(splits, fkeys, strict=True))
    atomic_write(folder / NAMES_FILE, names)
    # Last: with it the form is whole.
    shutil.copyfile(form.folder / ABOUT_FILE, folder / ABOUT_FILE)


def _free_port() -> int:
    """A port of this machine that nothing listens at now."""
    with socket.socket() as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.jobs.program.hand_over", allow_abbrev=False
    )
    add = parser.add_argument
    add("folder", type=Path, help="of the job")
    add("--manifest", type=Path, required=True, help="manifest's folder")
    add("--staging", type=Path, help="staging.json of a staging beside the job")
    add("--waits", action="store_true", help="the program begins before the staging has all")
    add("--split", help="whose frames the program is given; all by default")
    add("--prepare", metavar="WIDTHxHEIGHT|full", help="decode them once at this size")
    add("--give", action="append", default=[], help="what the program is given")
    add(
        "--checkpoint", nargs=2, metavar=("NAME@STEP", "PATH"), help="of another job, to begin with"
    )
    add("--job", default="", help="the job's name")
    add("--user", default="", help="whose job it is")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
