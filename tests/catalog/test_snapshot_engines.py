"""Older snapshots are read within one budget, whoever asks for however many of them."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from catalog.accounts.caller import acting_for
from catalog.errors import CatalogBusy, NotFound
from catalog.frames.frames import register
from catalog.lake import snapshot_engines
from catalog.limited_store import LimitedStore
from catalog.store import CatalogStore
from tests.api.servers import wait_until
from tests.catalog.some_rows import file, open_store, source_names
from tests.templates import Templates

COUNT = "SELECT count(*) FROM metaocean"
LIMIT_MB = 300
PLACES = 2


def make_six_snapshots(folder: Path) -> list[int]:
    """A catalog of six snapshots, each with a file more: their numbers."""
    store, numbers = open_store(folder), []
    for number in range(6):
        with store.writing("a file") as connection:
            register(connection, source_names(), [file(f"k{number}")], [], 1)
        numbers.append(store.snapshot())
    store.close()
    return numbers


@pytest.fixture
def store(numbers: list[int], tmp_path: Path) -> Iterator[CatalogStore]:
    """The catalog, as a server opens it."""
    opened = open_store(tmp_path, share_budget=True, memory_limit=f"{LIMIT_MB}MB")  # type: ignore[arg-type]
    yield opened
    opened.close()


@pytest.fixture
def numbers(templates: Templates, tmp_path: Path) -> list[int]:
    """The snapshots of a catalog in tmp_path."""
    return templates.copy(make_six_snapshots, tmp_path)


def test_all_engines_together_keep_the_limit(store: CatalogStore, numbers: list[int]) -> None:
    """Six threads ask six snapshots: right answers, by two engines of half the memory at most."""
    most = []

    def ask(position: int) -> int:
        with acting_for(f"user {position}"), store.reading(numbers[position]) as cursor:
            most.append(len(store.engines))
            time.sleep(0.05)
            row = cursor.execute(COUNT).fetchone()
            assert row is not None
            return int(row[0])

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ask, range(6))) == [1, 2, 3, 4, 5, 6]
    assert max(most) == PLACES
    with store.inspecting(numbers[0]) as cursor:
        limit = cursor.execute(
            "SELECT parse_formatted_bytes(current_setting('memory_limit'))"
        ).fetchone()
        assert limit is not None
        assert limit[0] * PLACES <= LIMIT_MB * 1_000_000


def test_one_snapshot_is_one_engine_for_everybody(store: CatalogStore, numbers: list[int]) -> None:
    """Whatever places are taken: who asks for a snapshot that is being read need not wait."""
    with ExitStack() as readers:
        for number in numbers[:PLACES]:
            readers.enter_context(store.reading(number))
        for caller in ("a", "b", "c"):
            with acting_for(caller), store.reading(numbers[0]) as cursor:
                assert cursor.execute(COUNT).fetchone() == (1,)
        assert len(store.engines) == PLACES


def test_who_waits_in_vain_is_told(
    store: CatalogStore, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the newest snapshot is there all the time."""
    monkeypatch.setattr(snapshot_engines, "_WAIT_S", 0.1)
    with ExitStack() as readers:
        for number in numbers[:PLACES]:
            readers.enter_context(store.reading(number))
        with pytest.raises(CatalogBusy, match="other snapshots are being read"):
            readers.enter_context(store.reading(numbers[2]))
        with store.reading() as cursor:
            assert cursor.execute(COUNT).fetchone() == (6,)
    with store.reading(numbers[2]) as cursor:
        assert cursor.execute(COUNT).fetchone() == (3,)


def test_a_caller_leaves_places_to_others(
    tmp_path: Path, numbers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With four places one caller has two; those who wait get theirs in the order they came."""
    monkeypatch.setattr(snapshot_engines, "_LEAST_BYTES", 1)
    monkeypatch.setattr(snapshot_engines, "_WAIT_S", 300.0)
    store = open_store(tmp_path, share_budget=True)
    came, ended = [], threading.Event()

    def ask(caller: str, number: int) -> None:
        with acting_for(caller), store.reading(number):
            came.append((caller, number))
            ended.wait(300)

    with ThreadPoolExecutor(5) as threads:
        greedy = [threads.submit(ask, "a", number) for number in numbers[:3]]
        wait_until(lambda: len(came) == 2)
        other = threads.submit(ask, "b", numbers[3])
        wait_until(lambda: len(came) == 3)
        assert came[2] == ("b", numbers[3])
        ended.set()
        for one in (*greedy, other):
            one.result()
    assert len(came) == 4
    store.close()


def test_limited_users_are_within_it(store: CatalogStore, numbers: list[int]) -> None:
    """Their engines of older snapshots have places among the others; one that is none is named."""
    limited = LimitedStore(store, "metaocean.filename <> 'k0'")
    for position, number in enumerate(numbers[:4]):
        with limited.reading(number) as cursor:
            assert cursor.execute(COUNT).fetchone() == (position,)
        assert len(store.engines) <= PLACES
    for _ in range(2):
        with pytest.raises(NotFound, match="no snapshot named '77'"), limited.reading(77):
            pass
    limited.close()


def test_an_engine_that_cannot_be_opened_takes_no_place(
    store: CatalogStore, numbers: list[int]
) -> None:
    """As often as somebody tries."""
    for _ in range(3):
        with pytest.raises(NotFound), store.reading(77):
            pass
    assert len(store.engines) == 0
    with store.reading(numbers[0]), store.reading(numbers[1]) as cursor:
        assert cursor.execute(COUNT).fetchone() == (2,)
