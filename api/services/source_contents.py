"""What hangs on a source: files, frames, tags that people gave, datasets."""

from contextlib import suppress
from typing import Any

from api.workspace import Workspace
from catalog.errors import FramesiftError
from catalog.frames.frames import source_contents
from ingest.scan.change_source import names_of
from pipeline.manifest_store import read_manifest


def contents_of(workspace: Workspace, name: str) -> dict[str, Any]:
    """Its files, frames, tags that people gave, and datasets; see answers.SourceContents.

    Raises:
        NotFound: There is no such source.
    """
    source = workspace.records.source(name)
    with workspace.catalog.reading() as cursor:
        files, frames, tags = source_contents(cursor, names_of(source))
    return {
        "name": name,
        "files": files,
        "frames": frames,
        "tags": tags,
        "datasets": _datasets(workspace, name),
    }


def _datasets(workspace: Workspace, source: str) -> list[str]:
    found = []
    for dataset in workspace.records.datasets():
        with suppress(FramesiftError):  # a manifest that is gone needs no files
            if source in read_manifest(workspace.records, dataset).header.roots:
                found.append(f"{dataset.name}@{dataset.version}")
    return found
