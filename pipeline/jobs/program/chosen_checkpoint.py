"""A checkpoint of another program's job, which a program begins with."""

from pathlib import Path

from catalog.errors import InvalidInput
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from pipeline.jobs.program.checkpoints import LIST_FILE, checkpoints_of
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.runs.checkpoint_steps import named_checkpoint


def chosen_checkpoint(records: RecordStore, named: str) -> tuple[str, Path]:
    """A checkpoint of a program's job: NAME@STEP, and its path.

    Args:
        records: The records.
        named: NAME@STEP, or NAME for the newest one.

    Raises:
        NotFound: There is no such job.
        InvalidInput: The job is no program's, or has no such checkpoint.
    """
    name, step = named_checkpoint(named)
    job = recorded_job(records, name)
    if job.kind != "run":
        raise InvalidInput(
            f"checkpoint {named}: {name} is a job of kind {job.kind}; expected one of framesift "
            "run, whose program names its checkpoints"
        )
    checkpoints = checkpoints_of(Path(job.paths["folder"])).whole
    chosen = [each for each in checkpoints if step in (None, each.step)]
    if not chosen:
        steps = ", ".join(f"{each.step:,}" for each in checkpoints) or "none"
        which = (
            "" if step is None else f" of step {step:,}" if isinstance(step, int) else f" {step}"
        )
        raise InvalidInput(
            f"checkpoint {named}: {name} has no checkpoint{which}; it has {steps} (a program names "
            f"them in {LIST_FILE})"
        )
    newest = chosen[-1]
    path = ProgramPaths(Path(job.paths["folder"])).output / newest.path
    return f"{name}@{newest.step}", path
