"""Statistics that the routes and the commands share."""

from collections import Counter
from collections.abc import Mapping

import pyarrow.compute as pc

from api.services.statistics.validation_scores import trained_on, validation_scores
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Dataset
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from query.question.question import Question
from query.statistics.class_statistics import class_report
from query.statistics.correlations import Correlation, correlate
from query.statistics.gap_report import GapReport
from query.statistics.gaps import Content, find_gaps
from query.statistics.population import Frames


def frames_of(
    workspace: Workspace,
    question: Question,
    dataset: str | None = None,
    split: str | None = None,
    at: int | None = None,
) -> Frames:
    """The frames that options mean: a question's, a dataset's at its own snapshot, or both.

    Args:
        workspace: The home.
        question: Its conditions and its snapshot.
        dataset: Only the frames of this one, NAME or NAME@VERSION.
        split: Only those of this split of it.
        at: The snapshot to ask; the dataset's, or else the newest, when None.

    Raises:
        InvalidInput: A split without a dataset, two snapshots, or a question for some of its frames
            only.
        NotFound: There is no such dataset.
        UnknownName: It has no such split.
    """
    if question.order or question.limit is not None or question.sample is not None:
        raise InvalidInput(
            "statistics are of all frames that fulfil a question: leave out its order, limit and "
            "sample, or save the selection as a dataset first"
        )
    at = question.asked_of(at)
    if dataset is None:
        if split is not None:
            raise InvalidInput(f"split {split}: of which dataset? give one, such as city@1")
        return Frames(question, at=at)
    record = recorded_dataset(workspace.records, dataset)
    manifest = read_manifest(workspace.records, record).split(split)
    return Frames(question, manifest.frames["fkey"], record.snapshot if at is None else at)


def dataset_gaps(
    workspace: Workspace,
    dataset: str,
    split: str | None = None,
    at_least: int = 1,
    scenes: bool = False,
    at: int | None = None,
) -> GapReport:
    """Gaps of a dataset, or one of its splits, against the catalog: classes, cameras, scenes.

    Raises:
        NotFound: There is no such dataset or snapshot.
        UnknownName: It has no such split.
    """
    record = recorded_dataset(workspace.records, dataset)
    whole = read_manifest(workspace.records, record)
    portion = whole.split(split)
    content = Content(
        dataset=_title(record),
        split=split,
        frames=len(portion),
        fkeys=whole.frames["fkey"],
        counts={
            "class": _frames_with_class(portion, workspace.class_names()),
            "camera": Counter(portion.frames["camera"].to_pylist()),
            "scene": Counter(portion.frames["scene"].to_pylist()),
        },
    )
    return find_gaps(
        workspace.catalog,
        content,
        at_least=at_least,
        kinds=("class", "camera", "scene") if scenes else ("class", "camera"),
        at=at,
    )


def _frames_with_class(manifest: Manifest, class_names: Mapping[str, str]) -> dict[str, int]:
    """Frames with a pixel of each class, by tag."""
    tags = {name: tag for tag, name in class_names.items()}
    pixels = manifest.frames["class_pixels"]
    return {
        tags[name]: int(pc.sum(pc.greater(pc.list_element(pixels, index), 0)).as_py() or 0)
        for index, name in enumerate(manifest.header.classes)
        if name in tags
    }


def _title(dataset: Dataset) -> str:
    return f"{dataset.name}@{dataset.version}"


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
        workspace: The home.
        validation: A validation job, or a training job: its newest finished validation.
        dataset: Whose shares; the model's training set when None, and the catalog where that is
            not known.
        split: Of that dataset; the training split, or all of it, when None.
        at: The snapshot to ask the shares of; the dataset's, or else the newest, when None.
        files: Whether ``validation`` may be the path of a report.json, or of a JSON object of
            class -> IoU.

    Raises:
        NotFound: There is no such validation, dataset or snapshot.
        InvalidInput: The validation has no report, or a split is given without a dataset.
        BadFile: The report is damaged.
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
    return Correlation(
        **correlate(report.classes, iou).model_dump(),
        validation=scored.name,
        dataset=_title(recorded_dataset(workspace.records, dataset)) if dataset else None,
        split=split,
        snapshot=report.snapshot,
    )
