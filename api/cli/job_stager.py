"""The staging beside a job: ``python -m api.cli.job_stager FOLDER --dataset NAME@VERSION ...``.

The job's runner starts and ends it. It alone opens sources, with the keys of the home; where it is
and how far, it says in the job folder's staging.json (pipeline.jobs.job_staging). Where nodes have
caches of their own, one runs on each: with the ranks of that node, and a file of that node's.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from api.cli.target import home_session
from catalog.errors import FramesiftError
from pipeline.jobs.request import JobPaths, write_json

if TYPE_CHECKING:
    from pipeline.cache.reading import StagingLocation
    from pipeline.staging.fetch import FailedFile
    from pipeline.staging.progress import Progress

_TOLD_EVERY_S = 0.5


def main(arguments: Sequence[str]) -> int:
    """Stage until told to end by SIGTERM; the exit status."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    from api.services.jobs.owners import check_begin  # with the home's stores

    said = _Said(options.said or JobPaths(options.folder).staging)
    try:
        session = home_session()
        check_begin(session.whole, options.folder.name)
        session.stagings.beside(
            options.dataset,
            job_folder=options.folder,
            cache=options.cache,
            split=options.split,
            readers=options.readers,
            here=options.ranks,
            seed=options.seed,
            batch_size=options.batch_size,
            start_after=options.start_after,
            located=said.begun,
            ready=said.ready,
            progress=said.progress,
            failed=said.failed,
            report=_say,
        )
    except FramesiftError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    finally:
        said.last()
    return 0


class _Said:
    """Writes staging.json."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said: dict[str, Any] = {"ready": False}
        self._written_s, self._is_written = 0.0, True

    def begun(self, place: "StagingLocation") -> None:
        """Say where readers find the staging."""
        self._write(place={"folder": place.folder, "manifest": place.manifest})

    def ready(self) -> None:
        """Say that readers may begin."""
        self._write(ready=True)
        _say("the job may begin")

    def progress(self, progress: "Progress") -> None:
        """Say how far it is, twice a second at most."""
        self._said |= progress.to_json()
        self._is_written = False
        if (
            time.monotonic() - self._written_s > _TOLD_EVERY_S
            or progress.files == progress.of_files
        ):
            self._write()

    def last(self) -> None:
        """Say how far it has come, where that was not written yet."""
        if not self._is_written:
            self._write()

    def failed(self, failure: "FailedFile") -> None:
        """Print what cannot be had; whether the job needs it will be seen."""
        _say(f"failed: {failure}")

    def _write(self, **said: object) -> None:
        self._said |= said
        self._written_s, self._is_written = time.monotonic(), True
        write_json(self._path, self._said)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """Have everything that is open end in its order; what is coming is removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(number) for number in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m api.cli.job_stager", allow_abbrev=False)
    add = parser.add_argument
    add("folder", type=Path, help="of the job, or of a script that trains without one")
    add("--dataset", required=True, help="NAME@VERSION")
    add("--cache", type=Path, required=True, help="folder that is staged into")
    add("--split", help="that the job reads; all frames by default")
    add("--readers", type=int, required=True, help="ranks of a training, shards of a validation")
    add("--seed", type=int, help="of a training's order")
    add("--batch-size", type=int, default=1, help="of a training's rank")
    add("--start-after", type=float, default=0.0, help="percent that must be there first")
    add("--ranks", type=_numbers, help="ranks or shards that read from this cache: 0,1; or all")
    add("--said", type=Path, help="file for where the staging is and how far; FOLDER/staging.json")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
