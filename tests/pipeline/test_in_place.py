"""Prepared forms of frames that lie in folders of this machine: in a cache, without their files."""

from pathlib import Path

import pytest

from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import NotFound
from pipeline.cache.contents import space
from pipeline.cache.lease import Holder, leased
from pipeline.cache.limits import Limits, write_limits
from pipeline.cache.reservation import Reservation
from pipeline.jobs.in_place import in_cache
from pipeline.jobs.job_input import job_input
from pipeline.manifest import Manifest
from pipeline.prepared.before_training import prepare_or_report
from pipeline.prepared.form import open_form, prepared_rows
from pipeline.runs.orders import Training
from pipeline.runs.size import Size
from tests.pipeline.homes import FRAMES
from tests.pipeline.jobs import home_of
from tests.pipeline.test_datasets import make

pytestmark = pytest.mark.wide
SIZE = Size(height_px=24, width_px=32)


@pytest.fixture
def manifest(workspace: Workspace) -> Path:
    """The dataset "streets", not staged, in the cache with its form."""
    home = home_of(workspace.records, workspace.job_queue)
    placed = in_cache(job_input(home, Training(), make(workspace)), workspace.cache)
    for write in placed.writes:
        write()
    prepare_or_report(placed.manifest, SIZE, "train-1")
    return placed.manifest


def test_a_training_reads_the_form_of_folders(workspace: Workspace, manifest: Path) -> None:
    """Each frame is in it; the cache has no copy of a file, and says what the form takes."""
    rows = prepared_rows(Manifest.read(manifest), SIZE)
    assert rows is not None
    assert all(rows.small(row) is not None for row in range(FRAMES))
    cache = Session(workspace, is_command=True).cache
    status = cache.status()
    (streets,) = status.datasets
    assert (streets.dataset, streets.bytes) == ("streets@1", 0)
    assert streets.prepared_bytes == status.bytes == space(workspace.cache)[0] > 0
    cache.pin("streets")
    cache.unpin("streets")
    assert cache.evict("streets").bytes == status.bytes
    assert space(workspace.cache) == (0, 0)
    assert not manifest.exists()
    with pytest.raises(NotFound):
        cache.evict("streets")


def test_the_form_is_held_by_a_job_and_goes_with_its_manifest(
    workspace: Workspace, manifest: Path
) -> None:
    """While a lease on the manifest lives, no staging evicts the form; then both go."""
    cache = workspace.cache
    write_limits(cache, Limits(hard_bytes=space(cache)[0]))
    whole = Manifest.read(manifest)
    with leased(cache, "new-v1-0", Holder("new@1")) as lease:
        reservation = Reservation(cache, lease)
        with leased(cache, manifest.name, Holder("streets@1", job="train-1")):
            assert not reservation.preview(1, 1).fits
        reservation.extend(1, 1)
    assert open_form(whole, SIZE) is None
    assert not manifest.exists()
