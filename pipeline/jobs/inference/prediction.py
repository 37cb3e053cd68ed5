"""Prediction as a job: what a model says of frames, with or without labels."""

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.jobs.inference.chosen_model import chosen_model, export_stage
from pipeline.jobs.inference.fan_out import prediction_stages
from pipeline.jobs.inference.over_split import model_over_split
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import JobOrder, Plan, submit

_USUAL = Resources()


def check_model(records: RecordStore, model: str, *, trusts: bool) -> None:
    """Refuse a model that is none, before anything is made for it.

    Raises:
        InvalidInput: It is not trained, or of a network whose code is not trusted.
        NotFound: There is no such model.
    """
    chosen_model(records, model, trusts=trusts)


def submit_prediction(
    records: RecordStore,
    queue: JobQueue,
    model: str,
    dataset: Dataset,
    *,
    workers: int = 2,
    split: str | None = None,
    trust_model: bool = False,
    bad_frames: str | None = None,
    stage: bool = True,
    start_after: float | None = None,
    attempts: int = 1,
    name: str | None = None,
    backend_name: str = "local",
    resources: Resources = _USUAL,
) -> Job:
    """Start predicting the frames of a dataset's split, fanned out over workers; its record.

    Args:
        records: The records.
        queue: The home's jobs.
        model: As of a validation.
        dataset: Whose frames, with or without labels.
        workers: Shards, each a process of its own.
        split: The split; None for "validation", or for all frames of a dataset not divided.
        trust_model: Whether a foreign model may run what its author put into it.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).
        stage: Whether it reads what is staged; else its files where its sources are mounted.
        start_after: Share of the split that is staged before it begins [percent]; see job_input.
        attempts: How often it may begin without a user's word, where it is lost.
        name: The job's name; made up when None.
        backend_name: Where it runs.
        resources: What it asks of the machines there, besides processes.

    Raises:
        InvalidInput: TensorFlow is not installed, the model is not trained, a bad name, workers
            < 1 or more than there can be, or a source is not mounted.
        StorageError: A source's mount is not there.
        NotFound: There is no such model.
        UnknownName: The dataset has no such split.
        AlreadyExists: A job has that name.
    """
    over = model_over_split(
        records, queue, model, dataset, workers=workers, split=split, trust_model=trust_model,
        bad_frames=bad_frames, stage=stage, start_after=start_after, resources=resources,
    )  # fmt: skip

    def plan(paths: JobPaths) -> Plan:
        each = over.command("predict", paths)
        results = {
            "pictures": str(paths.results),
            "scores": str(paths.report / "frame_scores.parquet"),
        }
        stages = prediction_stages(each, paths, workers, bad_frames)
        return over.plan(paths, (*export_stage([over.model], paths), *stages), results)

    return submit(
        records,
        queue,
        JobOrder(
            "predict", f"predict-{dataset.name}", name, dataset, backend_name, over.needs, attempts
        ),
        plan,
    )
