"""What was used last."""

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from catalog.storage.lru import Lru


def test_the_least_recently_used_goes() -> None:
    """Reading and writing use a value, looking whether it is there does not."""
    lru: Lru[str, int] = Lru(2)
    assert [lru.put("a", 1), lru.put("b", 2)] == [None, None]
    assert (lru.get("a"), "b" in lru) == (1, True)
    assert lru.put("c", 3) == 2
    assert lru.put("a", 10) is None
    assert (lru.get("b"), lru.values()) == (None, [10, 3])
    lru.pop("a")
    lru.pop("a")
    assert ("a" in lru, lru.clear(), lru.values()) == (False, [3], [])


def test_a_value_does_not_outlive_its_time() -> None:
    """However often it was used."""
    lasting: Lru[str, int] = Lru(2, lasts_s=3600.0)
    lasting.put("a", 1)
    gone: Lru[str, int] = Lru(2, lasts_s=0.01)
    gone.put("a", 1)
    time.sleep(0.02)
    assert (lasting.get("a"), gone.get("a"), "a" in gone, gone.values()) == (1, None, False, [])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=60), st.integers(1, 4))
def test_it_is_the_list_of_the_last_keys(steps: list[tuple[bool, int]], most: int) -> None:
    """Against the plain rule: keys in order of their last use, cut off at the bound."""
    lru: Lru[int, int] = Lru(most)
    last: list[int] = []
    for writes, key in steps:
        if writes:
            lru.put(key, key)
        elif key not in last:
            assert lru.get(key) is None
            continue
        else:
            assert lru.get(key) == key
        last = [key, *(one for one in last if one != key)][:most]
        assert lru.values() == last


def test_threads_share_it() -> None:
    """Four that read and write never exceed the bound, nor fail."""
    lru: Lru[int, int] = Lru(3)
    start = threading.Barrier(4)

    def use(first: int) -> None:
        start.wait()
        for number in range(500):
            lru.put((first + number) % 7, number)
            lru.get(number % 7)

    threads = [threading.Thread(target=use, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lru.values()) == 3
