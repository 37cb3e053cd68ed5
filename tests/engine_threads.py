"""Threads of DuckDB in the processes of tests: `make test` says one, users have all cores.

On tables as small as those of tests a second thread finds nothing to do, and burns a fifth of the
CPU on locks while it looks. Tests that need more say so where they open their catalog; what
`make test` does not run has all cores.
"""

import os

from catalog.store import CatalogStore

_VARIABLE = "FRAMESIFT_TEST_THREADS"


def limit_engine_threads() -> None:
    """Have catalogs that this process, and those forked from it, open take as many as it says."""
    threads = os.environ.get(_VARIABLE)
    defaults = CatalogStore.__init__.__kwdefaults__
    if threads and defaults is not None:
        defaults["threads"] = int(threads)
