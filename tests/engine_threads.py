"""Threads of DuckDB in the processes of tests: one in most tests, while users have all cores.

On tables as small as those of tests a second thread finds nothing to do, and burns a fifth of the
CPU on locks while it looks. Tests that need more say so where they open their catalog; wide tests
of the catalog and of questions have all cores, and so have the suites that set no variable.
"""

import os

from catalog.store import CatalogStore

_VARIABLE = "FRAMESIFT_TEST_THREADS"
_DEFAULTS = CatalogStore.__init__.__kwdefaults__ or {}


def usual_engine_threads() -> int | None:
    """How many `make test` and `make test-wide` say that catalogs take; None means all cores."""
    threads = os.environ.get(_VARIABLE)
    return int(threads) if threads else None


def engine_threads() -> int | None:
    """How many the catalogs take that this process opens; None means all cores."""
    threads: int | None = _DEFAULTS["threads"]
    return threads


def set_engine_threads(threads: int | None) -> None:
    """Have catalogs that this process opens from now on, and its forks, take that many."""
    _DEFAULTS["threads"] = threads
