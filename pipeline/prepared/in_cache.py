"""Making a prepared form beside a staged manifest, within the limits of its cache."""

from pathlib import Path

from pipeline.cache.lease import MANIFESTS, Holder, leased
from pipeline.cache.reservation import Reservation
from pipeline.prepared.prepare import Prepared, Progress, prepare
from pipeline.runs.size import FormSize


def prepare_in_cache(
    cache: Path, manifest: str, size: FormSize, holder: Holder, progress: Progress | None = None
) -> Prepared:
    """Make the form of a staged manifest, or what an earlier one lacks: pipeline.prepared.prepare.

    Args:
        manifest: Name of the staged manifest in it, which nobody evicts meanwhile.
        progress: Called with frames made so far, and of how many.
    """
    with leased(cache, manifest, holder) as lease:
        lease.need_manifest()
        reservation = Reservation(cache, lease)
        form = prepare(
            cache / MANIFESTS / manifest, size, progress=progress, reservation=reservation
        )
        reservation.trim()
    return form
