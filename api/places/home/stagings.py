"""Datasets of a home brought near its jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.cli.terminal import size
from api.places.stagings import Show
from api.workspace import Workspace
from pipeline.staging.stage import stage_dataset


@dataclass(frozen=True)
class HomeStagings:
    """A home."""

    workspace: Workspace

    def stage(
        self, dataset: str, cache: Path | None, workers: int, show: Show
    ) -> Mapping[str, Any]:
        """Copy here."""
        found = self.workspace.records.dataset(dataset)
        staging = stage_dataset(
            self.workspace.records,
            found,
            (cache or self.workspace.cache).expanduser().absolute(),
            workers=workers,
            progress=lambda files, copied: show(files, 2 * found.frames, size(copied)),
        )
        keys = ("cache", "manifest", "files", "files_copied", "bytes", "bytes_copied")
        return {"dataset": found.name, "version": found.version} | {
            key: getattr(staging, key) for key in keys
        }
