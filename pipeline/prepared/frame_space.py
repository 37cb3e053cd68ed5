"""Cache space for the frames of a form at full size, which is known when they are compressed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from catalog.errors import BadFile
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames
from pipeline.prepared.packed import most_bytes

if TYPE_CHECKING:
    from pipeline.cache.reservation import Reservation


class FrameSpace:
    """Reserves the most that frames may take while they are written."""

    def __init__(self, manifest: Manifest, reservation: "Reservation | None") -> None:
        """For frames of a manifest on disk; without a reservation nothing is reserved."""
        self._reservation = reservation
        self._frames = DecodedFrames(manifest, manifest.header.dataset_classes)

    @contextmanager
    def of(self, rows: Sequence[int]) -> Iterator[None]:
        """Have room for rows of the manifest in the block; then what they took counts as taken.

        Raises:
            CacheFull: The cache has no such room.
        """
        if self._reservation is None:
            yield
            return
        most = sum(map(self._most_bytes, rows))
        self._reservation.extend(most, 0)
        try:
            yield
        finally:
            self._reservation.arrived(most, 0)

    def _most_bytes(self, row: int) -> int:
        try:
            return most_bytes(*self._frames.size_px(row))
        except BadFile:
            return 0  # a bad frame takes none
