"""Runs of a policy: started here or as a job, followed, paused, resumed and ended."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from catalog.errors import CatalogBusy, FramesiftError, InvalidInput, NotFound
from catalog.lake.catalog import WritableCatalog
from catalog.policies import runs as policy_runs
from catalog.policies.runs import ACTIVE
from catalog.records.jobs import recorded_job
from catalog.records.policy_tables import Policy, PolicyRun
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.values import now
from pipeline.job_state import FINISHED
from pipeline.jobs.follow import refresh
from pipeline.policies.report import Killed, Report

_BEGINNING = timedelta(seconds=60)
"""For how long a run that has found no file yet is taken for one that begins just now."""


def perform(
    store: WritableCatalog,
    records: RecordStore,
    policy: Policy,
    run: PolicyRun,
    work: Callable[[Report], None],
) -> PolicyRun:
    """Do a run's work in this process, and record how it ended; its record.

    Args:
        run: As policy_runs.begin gave it.
        work: What is to be done; it reports, and stops where the report raises.
    """
    report = Report(records, run.id)
    try:
        with store.lock(_lock(policy), f"policy {policy.name} is running", wait_s=0.0):
            work(report)
    except Killed:
        return policy_runs.finish(records, run.id, "killed", report.counts)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        state, why = ("killed", "") if interrupted else ("failed", _reason(error))
        policy_runs.finish(records, run.id, state, report.counts, why)
        raise
    return policy_runs.finish(records, run.id, "complete", report.counts)


def start(
    store: WritableCatalog,
    records: RecordStore,
    policy: Policy,
    begin: Callable[[PolicyRun], Job],
) -> PolicyRun:
    """Run a policy as a job; the run's record.

    Args:
        store: The catalog.
        records: The records.
        policy: What to run.
        begin: Starts the job that does the run.

    Raises:
        InvalidInput: The policy is inactive, or running already.
        StorageError: The job cannot be started.
    """
    check_active(policy)
    newest(store, records, policy)
    run = policy_runs.begin(records, policy)
    try:
        job = begin(run)
    except BaseException as error:
        policy_runs.finish(records, run.id, "failed", None, _reason(error))
        raise
    policy_runs.set_job(records, run.id, job.name)
    return run


def check_active(policy: Policy) -> None:
    """Accept a policy that may be run.

    Raises:
        InvalidInput: It is inactive.
    """
    if policy.state.lower() != "active":
        raise InvalidInput(
            f"policy '{policy.name}' is inactive: set its state (pol_state) to active first"
        )


def newest(store: WritableCatalog, records: RecordStore, policy: Policy) -> PolicyRun | None:
    """A policy's newest run, ended on paper where its process has ended; None before the first."""
    run = policy_runs.last(records, policy.id)
    if run is None or run.state not in ACTIVE:
        return run
    ended = _ended(store, records, policy, run)
    if ended is None:
        return run
    return policy_runs.finish(records, run.id, ended[0], None, ended[1])


def ask(store: WritableCatalog, records: RecordStore, policy: Policy, action: str) -> None:
    """Let the policy's run pause, resume, or end ("kill"); it does between two batches.

    Raises:
        InvalidInput: It does not run, or is not paused.
    """
    run = newest(store, records, policy)
    if run is None or run.state not in ACTIVE:
        raise InvalidInput(f"policy '{policy.name}' is not running: there is nothing to {action}")
    if action == "resume" and run.wanted != "pause":
        raise InvalidInput(f"policy '{policy.name}' is not paused: there is nothing to resume")
    if action == "kill":
        policy_runs.want(records, run.id, "kill")
    elif run.wanted != "kill":
        policy_runs.want(records, run.id, "pause" if action == "pause" else "run")


def _ended(
    store: WritableCatalog, records: RecordStore, policy: Policy, run: PolicyRun
) -> tuple[str, str] | None:
    """The state of a run whose process left none; None where a process works on it."""
    if run.job:
        try:
            job = refresh(records, recorded_job(records, run.job))
        except NotFound:
            return "failed", f"its job {run.job} is gone"
        if job.state not in FINISHED:
            return None
        if job.state == "cancelled":
            return "killed", ""
        return "failed", job.error or "its process ended without finishing"
    if not run.total and now() - run.started < _BEGINNING:
        return None
    try:
        with store.lock(_lock(policy), "", wait_s=0.0):
            return "failed", "its process ended without finishing"
    except CatalogBusy:
        return None


def _lock(policy: Policy) -> str:
    return f"policy-{policy.id}"


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, FramesiftError) else f"{type(error).__name__}: {error}"


def history(
    store: WritableCatalog, records: RecordStore, policy: Policy, limit: int = 100
) -> Sequence[PolicyRun]:
    """A policy's newest runs, newest first."""
    newest(store, records, policy)
    return policy_runs.of_policy(records, policy.id, limit)
