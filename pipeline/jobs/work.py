"""The work of a job, planned: commands for its backend, and what they read and leave."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from catalog.records.store import RecordStore
from pipeline.jobs.environment import Need
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import Stage, StagingBeside
from pipeline.jobs.resources import Resources

if TYPE_CHECKING:  # those who list jobs do without pyarrow
    import pyarrow as pa

    from pipeline.manifest import Manifest
    from pipeline.runs.orders import Validation

Slices = Callable[["Manifest", str, Sequence[str]], "pa.Table"]
"""Gives, of a split of a manifest, the part that each frame is in by the values of these tags."""


@dataclass(frozen=True)
class PlaceFences:
    """How the predictions of an order are opened, by who may name which places."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Of their place, as JSON of ingest.sources.source_options."""
    list_within: str = ""
    """Folder that the list of their names must lie below; empty for anywhere."""


@dataclass(frozen=True)
class JobHome:
    """A home whose jobs are planned."""

    records: RecordStore
    """Its records, as far as the submitting user sees them."""
    queue: JobQueue
    """Its jobs."""
    slices: Slices
    """Looks in its catalog for the parts that a validation scores."""
    fences: Callable[["Validation"], PlaceFences]
    """Says how the predictions of an order are opened, or raises NotAllowed."""


@dataclass(frozen=True)
class Work:
    """The work of a job's backend; nothing of it is written yet."""

    stages: tuple[Stage, ...]
    """What runs, in order."""
    resources: Resources = field(default_factory=Resources)
    """What it asks of the machines."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Further paths that the job's record shows."""
    parallel: int = 1
    """Commands of one stage that run at once, each with all its ranks."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for every command."""
    needs: tuple[Need, ...] = ()
    """What of the home its commands open."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for, as the job's record shows it."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Manifests that its commands read, each with its dataset, NAME@VERSION."""
    staging: StagingBeside | None = None
    """What fetches its frames meanwhile; None where nothing does."""
    writes: tuple[Callable[[], object], ...] = ()
    """Write the files that its commands find, and that are not there yet."""
