"""The classes' shares of the pixels beside the IoU that a model has for each."""

from api.services.statistics.frames import frames_of
from api.services.statistics.validation_scores import trained_on, validation_scores
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.datasets import recorded_dataset
from query.question.question import Question
from query.statistics.class_statistics import class_report
from query.statistics.correlations import Correlation, correlate


def share_and_iou(
    workspace: Workspace,
    validation: str,
    dataset: str | None = None,
    split: str | None = None,
    at: int | None = None,
    *,
    files: bool = False,
) -> Correlation:
    """Correlate the classes' shares with the IoU that a validation found for each.

    Args:
        validation: A validation job, or a training job: its newest finished validation.
        dataset: Whose shares; the model's training set when None, and the catalog where that is
            not known.
        split: Of that dataset; the training split, or all of it, when None.
        at: The snapshot to ask the shares of; the dataset's, or else the newest, when None.
        files: Whether ``validation`` may be the path of a report.json, or of a JSON object of
            class -> IoU.

    Raises:
        InvalidInput: The validation has no report, or a split is given without a dataset.
    """
    scored = validation_scores(workspace, validation, files)
    names = workspace.class_names()
    if dataset is None and split is None:
        dataset, split = trained_on(workspace, scored.model_dir)
    frames = frames_of(workspace, Question(), dataset, split, at)
    report = class_report(workspace.catalog, frames)
    by_name = {name.lower(): tag for tag, name in names.items()}
    iou = {by_name.get(key.lower(), key.lower()): value for key, value in scored.iou.items()}
    if not iou.keys() & names.keys():
        excerpt = ", ".join(list(scored.iou)[:5]) or "none"
        raise InvalidInput(
            f"validation {validation}: none of its classes is one of the catalog's: {excerpt}"
        )
    record = recorded_dataset(workspace.records, dataset) if dataset else None
    return Correlation(
        **correlate([one for one in report.classes if one.tag in names], iou).model_dump(),
        validation=scored.name,
        dataset=f"{record.name}@{record.version}" if record else None,
        split=split,
        snapshot=report.snapshot,
    )
