"""Readers beside a process that replaces rows see whole commits: in process, servers, commands.

FRAMESIFT_TEST_COMMITS makes the series longer than the suite's.
"""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from tests.api.servers import framesift, serving, until_ready
from tests.catalog.replacing import FRAMES, fill
from tests.catalog.some_rows import open_store
from tests.zygote import Forked

pytestmark = pytest.mark.slow

COMMITS = int(os.environ.get("FRAMESIFT_TEST_COMMITS", "20"))
READERS = 2
STATEMENT = "select count(*), count(distinct fkey) from t_car"
RIGHT = (FRAMES, FRAMES)
REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A home whose catalog holds FRAMES frames."""
    store = open_store(tmp_path)
    fill(store)
    store.close()
    return tmp_path


@contextmanager
def replaced(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that replaces rows of the home, COMMITS times."""
    program = ["-m", "tests.catalog.replacing", str(home), str(COMMITS)]
    pipe = subprocess.PIPE
    with Forked(program, stdin=pipe, stdout=pipe, cwd=REPOSITORY) as process:
        try:
            yield process
        finally:
            process.kill()


def answers_beside_commits(home: Path, ask: Callable[[], object]) -> "Counter[object]":
    """How often each answer came, from READERS threads, until the commits are done."""
    counts: Counter[object] = Counter()
    counting = threading.Lock()
    with replaced(home) as process:

        def read(_number: int) -> None:
            while process.poll() is None:
                answer = ask()
                with counting:
                    counts[answer] += 1

        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(read, range(READERS)))
        assert process.stdout is not None
        assert process.stdout.read().strip() == str(COMMITS)
    print(f"{home.name}: {COMMITS} commits, {dict(counts)}")  # noqa: T201
    return counts


def test_in_process(filled: Path) -> None:
    """Two statements of one reading transaction, by a store of two threads."""
    store = CatalogStore(CatalogLocation.in_folder(filled / "catalog"), threads=2)

    def ask() -> object:
        with store.reading() as cursor:
            whole = cursor.execute("SELECT count(*), count(DISTINCT fkey) FROM metaocean")
            first = whole.fetchone()
            return first, cursor.execute(STATEMENT).fetchone()

    assert set(answers_beside_commits(filled, ask)) == {(RIGHT, RIGHT)}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("memory_mb", [0, 256])
def test_over_rest(filled: Path, workers: int, memory_mb: int) -> None:
    """SQL by a server of one process and of two, from Parquet and from memory."""
    variables = {"FRAMESIFT_SNAPSHOT_MEMORY_MB": str(memory_mb)}
    with (
        serving(filled, "--workers", str(workers), variables=variables) as (url, _),
        httpx.Client(timeout=120) as client,
    ):
        until_ready(url)

        def ask() -> object:
            answer = client.post(f"{url}/db2whrest/v1/sql_query", content=STATEMENT)
            return answer.status_code, answer.text.strip()

        counts = answers_beside_commits(filled, ask)
    assert set(counts) == {(200, f"0,{FRAMES},{FRAMES}")}


def test_by_commands(filled: Path) -> None:
    """Each command is a process of its own."""

    def ask() -> object:
        run = framesift(filled, "sql", STATEMENT, "--format", "csv")
        return run.returncode, run.stdout.strip()

    assert set(answers_beside_commits(filled, ask)) == {(0, f"0,{FRAMES},{FRAMES}")}
