"""What `stage --dry-run` says, and what the staging after it does."""

from pathlib import Path

import pytest

from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import CacheFull
from pipeline.cache.contents import space
from pipeline.cache.lease import LEASES
from pipeline.cache.limits import Limits, write_limits
from pipeline.staging.preview import preview_staging
from pipeline.staging.stage import stage_dataset
from tests.pipeline.homes import FRAMES
from tests.pipeline.test_datasets import make


def test_a_plan_says_what_the_staging_does(workspace: Workspace, tmp_path: Path) -> None:
    """Misses, then hits; an eviction; a limit that allows neither. Nothing comes or goes by it."""
    cache, records = tmp_path / "cache", workspace.records
    cars, dataset = make(workspace, "cars", "car=10000:"), make(workspace)
    plan = preview_staging(records, dataset, cache)
    assert (plan.files, plan.missing_files, plan.fits) == (2 * FRAMES, 2 * FRAMES, True)
    assert plan.seconds is None
    assert space(cache) == (0, 0)
    stage_dataset(records, cars, cache)
    before = space(cache)
    plan = preview_staging(records, dataset, cache)
    assert plan.missing_files == 2 * FRAMES - before[1]
    assert plan.seconds is not None
    assert plan.seconds > 0
    assert plan.evicted_bytes == 0

    write_limits(cache, Limits(hard_bytes=before[0]))
    plan = preview_staging(records, dataset, cache)
    assert not plan.fits
    assert "limited to" in plan.why
    assert [holder.partition(" (")[0] for holder in plan.holders] == ["streets@1 itself"]
    with pytest.raises(CacheFull, match=r"limited to .* streets@1 itself"):
        stage_dataset(records, dataset, cache)

    write_limits(cache, Limits())
    streets = stage_dataset(records, dataset, cache)
    assert streets.files_copied == 2 * FRAMES - before[1]
    assert preview_staging(records, dataset, cache).missing_files == 0
    assert not [place for place in (cache / LEASES).iterdir() if place.is_dir()]


def test_a_staging_that_fetches_nothing_needs_no_room(workspace: Workspace, tmp_path: Path) -> None:
    """The limit was lowered below what lies there: its dataset is staged and verified all the same.

    What may go still goes.
    """
    cache, records = tmp_path / "cache", workspace.records
    cars, others = make(workspace, "cars", "car=10000:"), make(workspace, "others", "car=:9999")
    stage_dataset(records, cars, cache)
    stage_dataset(records, others, cache)
    write_limits(cache, Limits(hard_bytes=preview_staging(records, cars, cache).bytes))
    assert preview_staging(records, cars, cache).evicted_datasets == ("others@1",)
    assert stage_dataset(records, cars, cache, verify=True).files_copied == 0
    assert preview_staging(records, others, cache).missing_files > 0
    write_limits(cache, Limits(hard_bytes=1))
    plan = preview_staging(records, cars, cache)
    assert (plan.fits, plan.why, plan.holders) == (True, "", ())
    assert stage_dataset(records, cars, cache, verify=True).files_copied == 0


def test_what_would_be_evicted(workspace: Workspace, tmp_path: Path) -> None:
    """By a dataset without frames in common; it is named, and goes only with the staging."""
    cache, records = tmp_path / "cache", workspace.records
    cars, others = make(workspace, "cars", "car=10000:"), make(workspace, "others", "car=:9999")
    write_limits(cache, Limits(hard_bytes=preview_staging(records, cars, cache).bytes))
    stage_dataset(records, others, cache)
    plan = Session(workspace, is_command=True).stagings.plan("cars", cache=cache)
    assert (plan.fits, plan.evicted_datasets) == (True, ["others@1"])
    assert plan.evicted_bytes > 0
    assert preview_staging(records, others, cache).missing_files == 0
    stage_dataset(records, cars, cache)
    assert preview_staging(records, others, cache).missing_files > 0
