"""Prediction as a job: what a model says of frames, with or without labels."""

from catalog.records.tables import Dataset
from pipeline.jobs.inference.chosen_model import ChosenModel, export_stage
from pipeline.jobs.inference.chosen_onnx import ChosenOnnx
from pipeline.jobs.inference.fan_out import prediction_stages
from pipeline.jobs.inference.over_split import model_over_split
from pipeline.jobs.request import JobPaths
from pipeline.jobs.work import JobHome, Work
from pipeline.manifest import Manifest
from pipeline.runs.orders import Prediction


def prediction_work(
    home: JobHome, order: Prediction, dataset: Dataset, paths: JobPaths, manifest: Manifest | None
) -> Work:
    """The work of a prediction, fanned out over workers; see pipeline.jobs.plan.work_of."""
    over = model_over_split(home, order, dataset, manifest)
    each = over.command("predict", paths)
    results = {
        "pictures": str(paths.results),
        "scores": str(paths.report / "frame_scores.parquet"),
    }
    stages = prediction_stages(each, paths, order.workers, order.bad_frames)
    networks = [over.model] if isinstance(over.model, ChosenModel) else []
    settings = {
        "model_name": over.model.name if isinstance(over.model, ChosenOnnx) else None,
        **{name: getattr(order, name) for name in ("classes", "onnx")},
    }
    return over.work(
        paths, (*export_stage(networks, paths), *stages), results, settings, [over.model]
    )
