"""The most informative part of a training set, as a new version of it."""

from api.schemas.new_datasets import NewReduction
from api.services.datasets.new_dataset import stores_of
from api.services.jobs.improve import known_of, newest_report
from api.services.jobs.improved_model import improved_model
from api.workspace import Workspace
from catalog.records.datasets import own_dataset, recorded_dataset
from catalog.records.tables import Dataset
from catalog.values import NOBODY, Owner
from pipeline.datasets.frame_worth import Worth
from pipeline.datasets.reduce import Reduction, reduce_dataset


def make_smaller(
    workspace: Workspace, name: str, request: NewReduction, owner: Owner = NOBODY
) -> Dataset:
    """Keep the most informative frames of a dataset's split, as a new version, for a user."""
    dataset = own_dataset(workspace.records, name)
    known = Worth({}, {}, None)
    if request.model is not None:
        model = improved_model(workspace, request.model)
        known = known_of(workspace, model.name, newest_report(model.validations))
    reduction = Reduction(
        request.frames,
        known.weak_classes,
        known.weak_slices,
        known.uncertainty,
        request.split,
        request.seed,
    )
    smaller = reduce_dataset(stores_of(workspace), dataset, reduction, owner)
    return recorded_dataset(workspace.records, f"{smaller.name}@{smaller.version}")
