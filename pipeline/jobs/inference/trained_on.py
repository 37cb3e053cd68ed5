"""What a model of another program was trained on, where its user says so."""

from pathlib import Path

from catalog.records.datasets import complete_dataset
from catalog.records.store import RecordStore
from pipeline.datasets.chosen_split import chosen_split
from pipeline.manifest import Manifest


def trained_split(records: RecordStore, dataset: str | None) -> tuple[str, str] | None:
    """Manifest and split of what a model was trained on; None where nobody said."""
    if dataset is None:
        return None
    manifest = complete_dataset(records, dataset).manifest
    return manifest, chosen_split(Manifest.read(Path(manifest)), None, "train")


def trained_flags(trained: tuple[str, str] | None) -> tuple[str, ...]:
    """Flags of a program that lists the frames that a model was trained on."""
    if trained is None:
        return ()
    return "--trained_manifest", trained[0], "--trained_split", trained[1]
