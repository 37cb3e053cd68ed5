"""A step of a job on the home's machine: ``python -m api.cli.job_step FOLDER STEP``.

FOLDER is the job's. "run" does a job that is the home's own work, by the order in its record;
"beside" stages what a job reads, by flags, until SIGTERM (api.cli.staging_beside); "scaling" drives
a study (api.services.jobs.scaling); what each other step does, api.services.jobs.steps says.
"""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.cli.target import home_session
from catalog.errors import FramesiftError
from catalog.text.visible_text import visible
from catalog.traces.spans import span
from pipeline.jobs.request import JobPaths, write_json
from pipeline.runs.without_packages import do_without

if TYPE_CHECKING:
    from api.schemas.home_orders import HomeOrder
    from api.services.session import Session
    from ingest.extractors.run import ExtractCounts


def main(folder: Path, step: str, flags: Sequence[str]) -> int:
    """Do the step; the exit status."""
    do_without("pandas")
    do: Callable[[Session], None]
    if step == "beside":
        from api.cli.staging_beside import beside

        do = beside(folder, flags, _say)
    elif step == "scaling":
        do = partial(_do_study, folder)
    else:
        do = partial(_do_order, folder) if step == "run" else partial(_do_step, folder, step)
    from api.services.jobs.owners import check_begin  # with the home's stores

    try:
        with span("job step", {"framesift.job": folder.name, "framesift.job.step": step}):
            session = home_session()
            check_begin(session.whole, folder.name)
            do(session)
    except FramesiftError as error:
        line = str(error).replace("\n", " ").strip()
        sys.stderr.write(f"error: {visible(line)}\n")
        return 1
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _do_study(folder: Path, session: "Session") -> None:
    from api.cli.sigterm import sigterm_exits
    from api.services.jobs.scaling import drive_study

    with sigterm_exits():
        drive_study(session.whole, folder, _say)


def _do_step(folder: Path, step: str, session: "Session") -> None:
    from api.services.jobs.steps import do_step

    do_step(session.whole, folder, step, _say)


def _do_order(folder: Path, session: "Session") -> None:
    from api.cli.sigterm import sigterm_exits
    from api.schemas.home_orders import Staging
    from api.services.jobs.home_orders import recorded_order

    order = recorded_order(session.whole, folder.name)
    with sigterm_exits() if isinstance(order, Staging) else nullcontext():
        result = _result(session, order, folder)
    write_json(JobPaths(folder).result, result)
    _say(json.dumps(result, indent=2, ensure_ascii=False))


def _result(session: "Session", order: "HomeOrder", folder: Path) -> Any:
    """Do an order in this process; the JSON document that it ends with."""
    from api.cli import destination
    from api.cli.json_report import MOST_PROBLEMS, JsonReport, failures
    from api.schemas.home_orders import Extraction, LabelCheck, PolicyRun, Scan, Staging

    report = JsonReport(JobPaths(folder).progress)
    match order:
        case Staging():
            staged = session.stagings.run(
                **vars(order),
                cache=None,
                progress=lambda progress: report.progress(progress.to_json()),
                failed=failures(as_json=True),
                job_folder=folder,
            )
            return staged.model_dump(mode="json")
        case Scan():
            done = session.scans.run(
                order, lambda counts: report.progress(counts.to_json()), made=destination.tell
            )
            return done.to_json()
        case Extraction():

            def show(family: str, counts: "ExtractCounts") -> None:
                ends = counts.read == counts.to_read  # which is what the job's metrics show
                report.progress({"family": family, **asdict(counts)}, is_last=ends)

            read = session.extractions.run(order, show)
            return [{**one, "problems": one["problems"][:MOST_PROBLEMS]} for one in read]
        case LabelCheck():

            def show_labels(labels: int, to_read: int) -> None:
                report.progress({"labels": labels, "labels_to_read": to_read})

            return session.label_checks.run(order, show_labels)
        case PolicyRun():
            return session.policies.run(order.policy, run_id=order.run).model_dump(mode="json")
    raise AssertionError(order)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
