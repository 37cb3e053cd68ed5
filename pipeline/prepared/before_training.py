"""The stage of a training job that prepares its frames.

    python -m pipeline.prepared.before_training MANIFEST WIDTHxHEIGHT|full --job NAME [--user USER]

It makes the form that the training will read, unless it is there. Whatever stands in its way it
says, and ends well: the training reads what there is, and decodes the rest.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from catalog.errors import FramesiftError, InvalidInput
from pipeline.cache.lease import Holder, cache_of
from pipeline.manifest import Manifest
from pipeline.prepared.in_cache import prepare_in_cache
from pipeline.prepared.kinds import opened_form
from pipeline.runs.size import FormSize, form_size

_TOLD_EVERY_S = 10.0


def main(arguments: Sequence[str]) -> int:
    """Prepare; 0, whether or not there is a form then."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    prepare_or_report(options.manifest, form_size(options.size), options.job, options.user)
    return 0


def prepare_or_report(manifest: Path, size: FormSize, job: str, user: str = "") -> None:
    """Make the form of a staged manifest where there is none, or print why not.

    Args:
        manifest: Its folder.
        user: Whose job that is; empty for one that is not limited to collections.
    """
    try:
        _prepare(manifest, size, job, user)
    except (FramesiftError, OSError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        _print(f"no prepared form of {size.words}: {reason}; the training decodes its frames")


def _prepare(folder: Path, size: FormSize, job: str, user: str) -> None:
    manifest, cache = Manifest.read(folder), cache_of(folder)
    name = f"{manifest.header.name}@{manifest.header.version}"
    if cache is None:
        raise InvalidInput(f"{folder}: is no staged manifest; framesift stage makes one")
    there = opened_form(manifest, size)
    if there is not None:
        _print(f"{name} is prepared at {size.words} already, nothing is decoded: {there.folder}")
        return
    _print(
        f"preparing the {len(manifest):,} frames of {name} at {size.words}, which this training "
        "then reads (--no-prepare: it decodes each frame that it reads)"
    )
    told_s = time.monotonic()

    def progress(frames: int, of: int) -> None:
        nonlocal told_s
        if frames == of or time.monotonic() - told_s >= _TOLD_EVERY_S:
            told_s = time.monotonic()
            _print(f"{frames:,} of {of:,} frames")

    form = prepare_in_cache(cache, folder.name, size, Holder(name, job, user), progress)
    for bad in form.bad:
        _print(f"failed: {bad.file}: {bad.reason}")
    copied = form.frames - form.decoded - len(form.bad)
    of_earlier = f", copied {copied:,} of an earlier form" if copied else ""
    _print(
        f"decoded {form.decoded:,} frames{of_earlier}; prepared form of "
        f"{form.bytes / 1e6:,.1f} MB: {form.folder}"
    )


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """Have everything that is open end in its order; what was being made is removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.prepared.before_training", allow_abbrev=False
    )
    add = parser.add_argument
    add("manifest", type=Path, help="staged manifest's folder")
    add("size", help="WIDTHxHEIGHT, or full")
    add("--job", required=True, help="whose stage this is")
    add("--user", default="", help="whose job that is")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
