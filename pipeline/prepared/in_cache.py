"""Making a prepared form beside a staged manifest, within the limits of its cache."""

from pathlib import Path

from pipeline.cache.lease import MANIFESTS, Holder, leased
from pipeline.cache.room import Room
from pipeline.prepared.prepare import Prepared, Progress, prepare
from pipeline.runs.size import Size


def prepare_in_cache(
    cache: Path, manifest: str, size: Size, holder: Holder, progress: Progress | None = None
) -> Prepared:
    """Make the form of a staged manifest, or what an earlier one lacks: pipeline.prepared.prepare.

    Args:
        cache: Folder of the cache.
        manifest: Name of the staged manifest in it, which nobody evicts meanwhile.
        size: Of the images.
        holder: Who holds it.
        progress: Called with frames made so far, and of how many.

    Raises:
        BadFile: The manifest is damaged.
        InvalidInput: It has no frames, or does not know the versions of its files.
        CacheFull: There is no room for the form, whatever is evicted.
        StorageError: The manifest was evicted, or the cache cannot be written.
    """
    with leased(cache, manifest, holder) as lease:
        lease.need_manifest()
        room = Room(cache, lease)
        form = prepare(cache / MANIFESTS / manifest, size, progress=progress, room=room)
        room.trim()
    return form
