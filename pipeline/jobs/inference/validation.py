"""Validation as a job: what runs, submitted."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from catalog.storage.atomic_write import atomic_path
from pipeline.jobs.inference.chosen_model import ChosenModel, chosen_model, export_stage
from pipeline.jobs.inference.fan_out import validation_stages
from pipeline.jobs.inference.over_split import model_over_split
from pipeline.jobs.installed import package_of
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import JobOrder, Plan, submit
from pipeline.runs.score_thresholds import check_thresholds

if TYPE_CHECKING:
    import pyarrow as pa

_USUAL = Resources()


def submit_validation(
    records: RecordStore,
    queue: JobQueue,
    model: str,
    dataset: Dataset,
    *,
    workers: int = 2,
    split: str | None = None,
    trust_model: bool = False,
    fail_below: Mapping[str, float] | None = None,
    bad_frames: str | None = None,
    compare: str | None = None,
    slices: Callable[[str], "pa.Table"] | None = None,
    augment_test: str | None = None,
    stage: bool = True,
    start_after: float | None = None,
    attempts: int = 1,
    name: str | None = None,
    backend_name: str = "local",
    resources: Resources = _USUAL,
) -> Job:
    """Start validating a model on a dataset's split, fanned out over workers; its record.

    Args:
        records: The records.
        queue: The home's jobs.
        model: Name of a training job, a model folder or file, or either with @STEP or
            @best (chosen_model).
        dataset: What to validate on.
        workers: Shards, each a process of its own.
        split: Split to validate on; None for "validation", or for all frames of a dataset that is
            not divided.
        trust_model: Whether a foreign model may run what its author put into it.
        fail_below: The least score by name (pipeline.runs.score_thresholds); the metrics say which
            were not reached.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).
        compare: Another model, which is validated on the same frames; the report says where this
            one is worse. None for none.
        slices: Gives of a split the part that each frame is in, by tags, which the report scores by
            themselves (pipeline.datasets.slice_values); None for cameras and scenes alone.
        augment_test: "mirror" to put each image through the model mirrored, too, and tell how many
            pixels change; None for not.
        stage: Whether it reads what is staged; else its files where its sources are mounted.
        start_after: Share of the split that is staged before it begins [percent]; see job_input.
        attempts: How often it may begin without a user's word, where it is lost.
        name: The job's name; made up when None.
        backend_name: Where it runs.
        resources: What it asks of the machines there, besides processes.

    Raises:
        InvalidInput: TensorFlow is not installed, a model is not trained, the two have different
            classes, a bad name, or workers < 1 or more than there can be, or a source is not
            mounted.
        StorageError: A source's mount is not there.
        NotFound: There is no such model.
        UnknownName: The dataset has no such split, or there is no such score.
        AlreadyExists: A job has that name.
    """
    over = model_over_split(
        records, queue, model, dataset, workers=workers, split=split, trust_model=trust_model,
        bad_frames=bad_frames, stage=stage, start_after=start_after, resources=resources,
    )  # fmt: skip
    over.frames.whole.split(over.split).need_labels()
    merged = over.model.class_map()
    check_thresholds(fail_below or {}, dataset.class_pixels if merged is None else merged.tags)
    other = None if compare is None else chosen_model(records, compare, trusts=trust_model)
    needs = over.needs
    if other is not None:
        _check_comparable(over.model, other)
        needs = replace(needs, packages=(*needs.packages, *package_of(other.network)))
    frame_slices = None if slices is None else slices(over.split)
    more = {
        "fail_below": dict(fail_below or {}),
        "compare": compare,
        "augment_test": augment_test,
        "slices": None if frame_slices is None else frame_slices.column_names,
    }
    over.settings.update({key: value for key, value in more.items() if value})
    over.flags.extend(_augmented_flags(augment_test))

    def plan(paths: JobPaths) -> Plan:
        results = {
            **({} if other is None else {"compared_model_dir": str(other.folder_in(paths))}),
            "report": str(paths.report / "report.json"),
            "page": str(paths.report / "report.html"),
            "confusion_matrix": str(paths.report / "confusion_matrix.png"),
        }
        stages = validation_stages(
            [*over.command("evaluate", paths), *_compared_flags(other, paths)],
            paths,
            workers,
            fail_below,
            bad_frames,
            compares=other is not None,
            slices=_slices_file(frame_slices, paths, dry_run=queue.dry_run),
        )
        models = [over.model] if other is None else [over.model, other]
        return over.plan(paths, (*export_stage(models, paths), *stages), results)

    return submit(
        records,
        queue,
        JobOrder(
            "validate",
            f"validate-{dataset.name}",
            name,
            dataset,
            backend_name,
            needs,
            attempts,
        ),
        plan,
    )


def _augmented_flags(augment_test: str | None) -> list[str]:
    """The flags that say how each image is changed.

    Raises:
        InvalidInput: It cannot be.
    """
    if augment_test not in (None, "mirror"):
        raise InvalidInput(f"augment test {augment_test}: expected mirror")
    return ["--augment_test", augment_test] if augment_test else []


def _slices_file(frame_slices: "pa.Table | None", paths: JobPaths, *, dry_run: bool) -> Path | None:
    """The file with the slices that frames are in; None where they are in none."""
    if frame_slices is None:
        return None
    import pyarrow.parquet as pq  # those who list jobs do without it

    path = paths.folder / "slices.parquet"
    if dry_run:
        return path
    with atomic_path(path, parents=True) as partial_path:
        pq.write_table(frame_slices, partial_path)
    return path


def _check_comparable(model: ChosenModel, other: ChosenModel) -> None:
    """Accept two models that tell the same classes apart, as far as their descriptions say.

    Raises:
        InvalidInput: They do not.
        BadFile: A description is damaged.
    """
    ours, theirs = (each.description().get("classes") for each in (model, other))
    if ours is not None and theirs is not None and ours != theirs:
        raise InvalidInput(
            f"compare {other.name}: knows {len(theirs)} classes and model {model.name} "
            f"{len(ours)}, not all the same; compare models that were trained with the same "
            "class list and --classes"
        )


def _compared_flags(other: ChosenModel | None, paths: JobPaths) -> list[str]:
    if other is None:
        return []
    own = ["--compare_network", other.network] if other.network else []
    return ["--compare_dir", str(other.folder_in(paths)), *own]
