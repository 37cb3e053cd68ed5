"""Few statements of wide rows at once, one of each caller, in the order of their coming."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from catalog.accounts.caller import acting_for
from query.run import wide_statements
from query.run.wide_statements import PLACES, wide_slot


def wait_forever() -> None:
    """Nothing ends the wait."""


def test_few_at_once_and_one_of_each_caller() -> None:
    """Of three callers with three statements each no more run than there are places."""
    running: list[str] = []
    most = []
    looking = threading.Lock()

    def run(caller: str) -> None:
        with acting_for(caller), wide_slot(wait_forever):
            with looking:
                running.append(caller)
                most.append(len(running))
                assert len(set(running)) == len(running)
            time.sleep(0.01)
            with looking:
                running.remove(caller)

    with ThreadPoolExecutor(9) as threads:
        list(threads.map(run, ["a", "b", "c"] * 3))
    assert max(most) == PLACES
    assert not wide_statements._running
    assert not wide_statements._waiting


def test_who_gives_up_leaves_the_line() -> None:
    """A statement that is cancelled while it waits takes nobody's turn."""

    def give_up() -> None:
        raise TimeoutError

    with acting_for("a"), wide_slot(wait_forever):
        with pytest.raises(TimeoutError), wide_slot(give_up):
            pass
        with acting_for("b"), wide_slot(give_up):
            pass
    assert not wide_statements._running
    assert not wide_statements._waiting
