"""Validation as a job: what runs."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import InvalidInput
from catalog.records.tables import Dataset
from catalog.storage.atomic_write import atomic_path
from pipeline.jobs.inference.chosen_model import ChosenModel, chosen_model, export_stage
from pipeline.jobs.inference.chosen_onnx import ChosenOnnx, chosen_onnx, is_onnx
from pipeline.jobs.inference.chosen_predictions import (
    ChosenPredictions,
    chosen_predictions,
    match_stage,
)
from pipeline.jobs.inference.earlier_validation import earlier_validation
from pipeline.jobs.inference.fan_out import validation_stages
from pipeline.jobs.inference.over_split import Chosen, ModelOverSplit, model_over_split
from pipeline.jobs.request import JobPaths
from pipeline.jobs.work import JobHome, Work
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from pipeline.runs.orders import Validation
from pipeline.runs.score_thresholds import check_thresholds

if TYPE_CHECKING:
    import pyarrow as pa


def validation_work(
    home: JobHome, order: Validation, dataset: Dataset, paths: JobPaths, manifest: Manifest | None
) -> Work:
    """The work of a validation, fanned out over workers; see pipeline.jobs.plan.work_of.

    Raises:
        InvalidInput: The two models that it compares have different classes.
        UnknownName: There is no such score, or no such tag.
    """
    over = model_over_split(home, order, dataset, manifest)
    over.frames.whole.split(over.split).need_labels()
    merged = over.model.class_map()
    class_tags = dataset.class_pixels if merged is None else merged.tags
    check_thresholds(order.fail_below or {}, class_tags)
    other: Chosen | None = None
    if order.compare is not None:
        other = _compared(home, order, over)
        _check_comparable(over.model, other)
    slices_file, slices = None, None
    if order.slices:
        slices_file = paths.folder / "slices.parquet"
        of = manifest or read_manifest(home.records, dataset)
        slices = home.slices(of, over.split, order.slices)
    mirrored = ["--augment_test", order.augment_test] if order.augment_test else []
    stages = validation_stages(
        [*over.command("evaluate", paths, mirrored), *_compared_flags(other, paths)],
        paths,
        order.workers,
        order.fail_below,
        order.bad_frames,
        compares=other is not None,
        slices=slices_file,
    )
    results = {
        **({} if other is None else {"compared_model_dir": str(other.folder_in(paths))}),
        "report": str(paths.report / "report.json"),
        "page": str(paths.report / "report.html"),
        "confusion_matrix": str(paths.report / "confusion_matrix.png"),
    }
    settings = {
        "fail_below": dict(order.fail_below or {}),
        "compare": order.compare,
        "augment_test": order.augment_test,
        "slices": None if slices is None else slices.column_names,
        **{name: getattr(order, name) for name in _OF_PREDICTIONS},
        **(_of_onnx(over.model) if isinstance(over.model, ChosenOnnx) else {}),
    }
    models = [over.model] if other is None else [over.model, other]
    networks = [model for model in models if isinstance(model, ChosenModel)]
    matches = [
        model.match(paths, over.frames.flags(paths), over.split)
        for model in models
        if isinstance(model, ChosenPredictions)
    ]
    if all(isinstance(model, ChosenPredictions) for model in models):
        stages = tuple(replace(stage, uses_gpus=False) for stage in stages)
    before = (*export_stage(networks, paths), *match_stage(matches))
    work = over.work(paths, (*before, *stages), results, settings, models)
    if slices is None or slices_file is None:
        return work
    return replace(work, writes=(*work.writes, partial(_write_slices, slices, slices_file)))


_OF_PREDICTIONS = (
    "predictions", "scores", "model_name", "model_info", "encoding", "named_by", "classes",
    "trained_on", "onnx",
)  # fmt: skip


def _of_onnx(model: ChosenOnnx) -> dict[str, str | None]:
    """What an improvement looks for, said or not."""
    return {"model_name": model.name, "trained_on": model.trained_on}


def _compared(home: JobHome, order: Validation, over: ModelOverSplit) -> Chosen:
    """The model that an order compares with, or that of an earlier validation."""
    name, header = order.compare or "", over.frames.whole.header
    earlier = earlier_validation(home.records, name)
    if earlier is not None and earlier.scores_predictions:
        return chosen_predictions(home, earlier, header, "compared")
    if earlier is not None:
        return chosen_onnx(home.records, earlier, header, earlier.model, "compared_onnx")
    if is_onnx(home.records, name):
        class_map = over.model.class_map()
        classes = None if class_map is None else class_map.as_json()
        alone = Validation(dataset=order.dataset, model=name, classes=classes)
        return chosen_onnx(home.records, alone, header, name, "compared_onnx")
    return chosen_model(home.records, name, trusts=order.trust_model)


def _write_slices(slices: "pa.Table", file: Path) -> None:
    import pyarrow.parquet as pq  # those who list jobs do without it

    with atomic_path(file, parents=True) as partial_path:
        pq.write_table(slices, partial_path)


def _check_comparable(model: Chosen, other: Chosen) -> None:
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


def _compared_flags(other: Chosen | None, paths: JobPaths) -> list[str]:
    if other is None:
        return []
    own = ["--compare_network", other.network] if other.network else []
    return ["--compare_dir", str(other.folder_in(paths)), *own]
