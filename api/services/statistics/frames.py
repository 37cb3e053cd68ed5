"""The frames that statistics are of."""

from api.workspace import Workspace
from catalog.errors import InvalidInput
from query.question.question import Question
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
        question: Its conditions and its snapshot.
        dataset: Only the frames of this one, NAME or NAME@VERSION.
        at: The snapshot to ask; the dataset's, or else the newest, when None.

    Raises:
        InvalidInput: A split without a dataset, two snapshots, or a question for some of its frames
            only.
    """
    if question.order or question.limit is not None or question.sample is not None:
        raise InvalidInput(
            "statistics are of all frames that fulfil a question: leave out its order, limit and "
            "sample, or save the selection as a dataset first"
        )
    at = question.snapshot_for(at)
    if dataset is None:
        if split is not None:
            raise InvalidInput(f"split {split}: of which dataset? give one, such as city@1")
        return Frames(question, at=at)
    from catalog.records.datasets import recorded_dataset
    from pipeline.manifest_store import read_manifest

    record = recorded_dataset(workspace.records, dataset)
    manifest = read_manifest(workspace.records, record).split(split)
    return Frames(question, manifest.frames["fkey"], record.snapshot if at is None else at)
