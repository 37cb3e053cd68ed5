"""Many older snapshots at once: each is read by an engine of its own, within one budget."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.attacks.arena import arena
from tests.attacks.conftest import Watched
from tests.catalog.some_rows import open_store

SQL = "/v1/sql"
SNAPSHOTS = 12
LIMIT_MB = 300
ALL = ", ".join(f"metaocean {name}" for name in "abc")
STATEMENT = (
    f"select a.fkey, b.fkey, c.fkey, count(*) from {ALL} group by a.fkey, b.fkey, c.fkey "
    "order by 4, 1, 2, 3 fetch first 1 rows only"
)
"""A group and a sorted row for each three files: as much memory as it is let have."""


def test_each_statement_another_snapshot(home: Path, watched: Watched) -> None:
    """Twelve statements of twelve snapshots: together they take no more than the budget."""
    store = open_store(home)
    for _ in range(SNAPSHOTS):
        with store.writing("no change") as connection:
            connection.execute("CREATE OR REPLACE TABLE tags_empty (fkey VARCHAR)")
    newest = store.snapshot()
    store.close()
    variables = {"FRAMESIFT_QUERY_MEMORY": f"{LIMIT_MB}MB", "FRAMESIFT_SNAPSHOT_MEMORY_MB": "0"}
    with arena(home, memory_mb=4096, variables=variables) as server:

        def ask(number: int) -> int:
            with server.client("dataadmin") as client:
                return client.post(SQL, json={"statement": STATEMENT, "at": number}).status_code

        with watched(server, most_mb=900), ThreadPoolExecutor(SNAPSHOTS) as threads:
            codes = list(threads.map(ask, range(newest - SNAPSHOTS, newest)))
        assert set(codes) <= {200, 400, 503}, codes
        assert 200 in codes, codes
