"""A manifest whose files are read where its sources are mounted, without any copy."""

from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput, StorageError
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.storage.file_version import SIZE_ALONE
from ingest.sources.mount import MOUNT, Mount
from ingest.sources.schemes import is_archive, scheme_of
from ingest.sources.source_options import SourceOptions
from pipeline.manifest import FrameFile, Manifest, ManifestHeader


def mounts_of(records: RecordStore, header: ManifestHeader) -> dict[str, Mount]:
    """The mount of each of a manifest's sources; a folder that has no other is its own.

    Args:
        header: Of a manifest that is not staged, with the sources' places as they are now.

    Raises:
        InvalidInput: A source is neither a folder nor mounted as one; it is named.
    """
    mounts, without = {}, []
    mounted = {
        source.name: SourceOptions.from_json(source.options).mount
        for source in recorded_sources(records)
        if header.datasources.get(source.name) == f"{source.cluster}:{source.datasource}"
    }
    for name, root in header.roots.items():
        if text := mounted.get(name, ""):
            mounts[name] = Mount.parse(text)
        elif scheme_of(root).is_local and not is_archive(root):
            mounts[name] = Mount(root, root)
        else:
            without.append(f"{name} ({root})")
    if without:
        raise InvalidInput(
            f"dataset {header.name}@{header.version}: {', '.join(without)}: no folder of a mounted "
            "file system is known for it; say where its root lies there (framesift source set "
            f"NAME --mount {MOUNT}), or stage the dataset"
        )
    return mounts


def mounted_manifest(
    manifest: Manifest,
    mounts: Mapping[str, Mount],
    *,
    in_container: bool = False,
    downloaded: Container[str] = (),
) -> Manifest:
    """The manifest with its sources' roots at their mounts.

    Of objects, whose versions only their store knows (ETags), the sizes alone are compared there;
    of files sizes and times of last change.

    Args:
        in_container: Whether containers and pods read it, and not the host.
        downloaded: Sources whose files show at their mounts when they have been downloaded: only
            the folders are looked for.
    """
    header = manifest.header
    roots = {name: m.container if in_container else m.host for name, m in mounts.items()}
    within = {
        name: fence for name, fence in header.within.items() if roots[name] == header.roots[name]
    }
    rows = manifest.frames
    for kind in ("image", "label"):
        column = f"{kind}_version"
        versions = rows[column]
        is_etag = pc.fill_null(pc.starts_with(versions, "etag:"), False)
        known = pc.if_else(is_etag, pa.scalar(SIZE_ALONE), versions)
        rows = rows.set_column(rows.column_names.index(column), rows.schema.field(column), known)
    mounted = Manifest(replace(header, roots=roots, within=within), rows)
    if not in_container:
        _check_there(mounted, downloaded)
    return mounted


def _check_there(manifest: Manifest, downloaded: Container[str]) -> None:
    """Look for the first file of each source: a file system that is away is found before a job."""
    first: dict[str, FrameFile] = {}
    for file in (*manifest.images(), *manifest.labels()):
        if file is not None:
            first.setdefault(file.source, file)
    for name, file in first.items():
        try:
            status = Path(file.root if name in downloaded else file.path).stat()
        except OSError as error:
            raise StorageError(
                f"{file.path}: {error.strerror}: source {name} is read at {file.root} without "
                "staging; is it mounted? framesift source set NAME --mount says where",
                file.path,
            ) from error
        if status.st_size != file.size and name not in downloaded:
            raise StorageError(
                f"{file.path}: has {status.st_size:,} bytes, the dataset's file {file.size:,}: "
                f"does the mount of source {name} begin where its root does?",
                file.path,
            )
