"""The staging beside a job: ``python -m api.cli.job_step FOLDER beside --dataset streets@1 ...``.

The job's runner starts and ends it; scripts that train without a job do it themselves. It alone
opens sources, with the keys of the home; where it is and how far, it says in the folder's
staging.json (pipeline.jobs.job_staging). Where nodes have caches of their own, one runs on each:
with the ranks of that node, and a file of that node's.
"""

import argparse
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from pipeline.jobs.job_staging import StagingReport
from pipeline.jobs.request import JobPaths

if TYPE_CHECKING:
    from api.services.session import Session


def beside(
    folder: Path, flags: Sequence[str], report_line: Callable[[str], None]
) -> "Callable[[Session], None]":
    """The staging that the flags describe, which ends by SIGTERM; they are read at once."""
    options = _parser().parse_args(flags)
    signal.signal(signal.SIGTERM, _end)

    def stage(session: "Session") -> None:
        from pipeline.staging.concurrent import ConcurrentCallbacks
        from pipeline.staging.stage_concurrently import SplitReading

        reading = SplitReading(
            options.split,
            options.readers,
            options.ranks,
            options.seed,
            options.batch_size,
            options.start_after / 100,
        )
        report = StagingReport(options.said or JobPaths(folder).staging)

        def ready() -> None:
            report.ready()
            report_line("the job may begin")

        try:
            session.stagings.beside(
                options.dataset,
                reading,
                job_folder=folder,
                cache=options.cache,
                callbacks=ConcurrentCallbacks(
                    ready,
                    lambda progress: report.progress(progress.to_json()),
                    lambda failure: report_line(f"failed: {failure}"),  # the job may not need it
                    report_line,
                ),
                located=lambda place: report.place(place.folder, place.manifest),
            )
        finally:
            report.last()

    return stage


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """Have everything that is open end in its order; what is coming is removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(number) for number in text.split(","))


def _parser() -> argparse.ArgumentParser:
    program = "python -m api.cli.job_step FOLDER beside"
    parser = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    add = parser.add_argument
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
