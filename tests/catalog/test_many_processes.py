"""Readers, ingests, a watcher and a tag import at once: benchmarks/many_processes.py."""

from pathlib import Path

import pytest

from benchmarks.many_processes import ROLES, Report, measure
from tests.catalog.backends import new_location, variables
from tests.postgres_server import postgres

pytestmark = pytest.mark.slow
SECONDS = 9.0


@pytest.mark.parametrize("backend", ["sqlite-folder", "postgres-folder"])
def test_nothing_fails_and_nothing_is_doubled(backend: str, tmp_path: Path) -> None:
    """Every operation of every process succeeds; each file is there once; readers go on."""
    records = postgres().new() if backend.startswith("postgres") else tmp_path / "records.sqlite"
    settings = variables(new_location(backend, tmp_path), records)
    report: Report = measure(
        settings, tmp_path, frames=1_000, seconds=SECONDS, compacting=True, alone=False
    )
    assert report.failures == []
    assert report.counted == report.files
    assert set(report.doubled.values()) == {0}
    done = {role: sum(len(w.seconds) for w in report.work if w.role == role) for role in ROLES}
    assert all(done.values()), done
