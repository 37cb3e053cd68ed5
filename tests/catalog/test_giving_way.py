"""Work of lower priority."""

import os
import threading

import pytest

from catalog.memory.giving_way import giving_way


def _priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_it_alone_gives_way() -> None:
    """The work, and threads that it starts, have a lower priority; the caller has its own."""
    before = _priority()
    begun: list[int] = []
    thread = threading.Thread(target=lambda: begun.append(_priority()))

    def work() -> int:
        thread.start()
        thread.join()
        return _priority()

    assert giving_way(work) == min(19, before + 5)
    assert begun == [min(19, before + 5)]
    assert _priority() == before


def test_its_errors_are_the_callers() -> None:
    """What the work raises is raised where it was asked for."""

    def fails() -> None:
        raise ZeroDivisionError("of the work")

    with pytest.raises(ZeroDivisionError, match="of the work"):
        giving_way(fails)
