"""Commands of this package: their flags, their output and their ends."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from catalog.errors import FramesiftError, InvalidInput, JobFailed
from pipeline.runs.exit_codes import GOES_ON

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class Interrupted(JobFailed):
    """A training that ended before its end, and goes on when it is started again."""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, ``error: ...``, and exit status 2."""

    def error(self, message: str) -> NoReturn:
        """End the program with the complaint."""
        self.exit(EXIT_USAGE, f"error: {message} (--help lists the flags)\n")


def say(line: str) -> None:
    """Write one progress line to standard output, at once: somebody may be following the log."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def exit_status(work: Callable[[], None]) -> int:
    """Do the work; the exit status: 0, or another after one line ``error: ...`` on standard error.

    It is GOES_ON where the same command goes on, 130 at Ctrl-C, and else 1.
    """
    try:
        work()
    except FramesiftError as error:
        _complain(str(error))
        return GOES_ON if isinstance(error, Interrupted) else EXIT_FAILED
    except MemoryError:
        _complain("out of memory: lower --batch_size, --height and --width, or --cache_mib")
        return EXIT_FAILED
    except OSError as error:
        _complain(f"{error.filename or 'the system'}: {error.strerror or error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return EXIT_INTERRUPTED
    return 0


def positive_int(text: str) -> int:
    """A flag's whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: Anything else.
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return int(text)


def count(text: str) -> int:
    """A flag's whole number of at least 0.

    Raises:
        argparse.ArgumentTypeError: Anything else.
    """
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 0")
    return int(text)


def add_trained_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what a model of another program was trained on."""
    parser.add_argument("--trained_manifest", type=Path, help="what the model was trained on")
    parser.add_argument("--trained_split", help="the split of that")


def trained_of(
    parser: argparse.ArgumentParser, flags: argparse.Namespace
) -> tuple[Path, str] | None:
    """Manifest and split that a model was trained on; None where nobody says."""
    if (flags.trained_manifest is None) != (flags.trained_split is None):
        parser.error("--trained_manifest and --trained_split: give both, or none")
    if flags.trained_manifest is None:
        return None
    return flags.trained_manifest, flags.trained_split


def check_shard(shard: int, shards: int) -> None:
    """Accept a shard number.

    Raises:
        InvalidInput: Not 0 <= shard < shards.
    """
    if not 0 <= shard < shards:
        raise InvalidInput(f"--shard {shard} --shards {shards}: expected 0 <= shard < shards")


def _complain(message: str) -> None:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    sys.stderr.flush()
