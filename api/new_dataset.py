"""Asking a question and saving its answer: what the route and the command both do."""

from pydantic import BaseModel, ConfigDict, Field

from api.workspace import Workspace
from catalog.tables import Dataset
from pipeline.datasets import create_dataset
from pipeline.split import parse_split
from query.select_frames import select_frames
from query.selection import Question, Selection


class NewDataset(BaseModel):
    """A dataset to be made."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(examples=["val-bikes"])
    question: Question
    split: str | None = Field(default=None, examples=["train=0.8,validation=0.2"])
    split_by: str = Field(default="scene", description="What stays on one side.")
    seed: int = Field(default=0, ge=0)


def ask(workspace: Workspace, question: Question, at: int | None = None) -> Selection:
    """The answer to a question, within the settings' limits.

    Args:
        workspace: The home.
        question: What is wanted.
        at: The snapshot to ask; the newest when None.
    """
    return select_frames(
        workspace.catalog,
        question,
        workspace.records.class_names(),
        workspace.settings.query_timeout_s,
        at,
    )


def make_dataset(workspace: Workspace, wanted: NewDataset, at: int | None = None) -> Dataset:
    """Ask the question, of the snapshot ``at`` where one is given, and save its answer."""
    return save_selection(workspace, wanted, ask(workspace, wanted.question, at))


def save_selection(workspace: Workspace, wanted: NewDataset, selection: Selection) -> Dataset:
    """Save an answer that has been had already."""
    catalog = workspace.catalog
    if selection.snapshot == catalog.snapshot():
        return _saved(workspace, wanted, selection)
    # Compaction holds the lock while it chooses the snapshots to expire: it leaves those alone that
    # a dataset names, and must not come between asking and naming.
    with (
        catalog.writing(f"dataset {wanted.name}"),
        catalog.reading(selection.snapshot),
    ):
        return _saved(workspace, wanted, selection)


def _saved(workspace: Workspace, wanted: NewDataset, selection: Selection) -> Dataset:
    return create_dataset(
        workspace.records,
        workspace.datasets,
        wanted.name,
        selection,
        shares=parse_split(wanted.split) if wanted.split else None,
        split_by=wanted.split_by,
        seed=wanted.seed,
    )
