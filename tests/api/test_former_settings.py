"""Variables of settings that had another name."""

import pytest

from api.settings import Settings


def test_a_former_name_counts_and_the_present_one_goes_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that is started as before holds as much in memory as before."""
    monkeypatch.setenv("FRAMESIFT_HOT_MEMORY_MB", "70")
    assert Settings().snapshot_memory_mb == 70
    monkeypatch.setenv("FRAMESIFT_SNAPSHOT_MEMORY_MB", "80")
    assert Settings().snapshot_memory_mb == 80
    assert Settings(snapshot_memory_mb=90).snapshot_memory_mb == 90
