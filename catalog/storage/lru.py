"""A bounded store of the values that were used last, by key. A leaf, standard library only.

For what functools.lru_cache cannot do: values that are made outside of its lock, looked at, left
alone when making them fails, or closed when they are given up.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Lru(Generic[Key, Value]):
    """At most so many values: for a new one the least recently used goes. Safe for threads."""

    def __init__(self, most: int, lasts_s: float = math.inf) -> None:
        """Empty.

        Args:
            most: Values kept, at least 1.
            lasts_s: For how long a value is, from when it was put there [s].
        """
        self._most, self._lasts_s = most, lasts_s
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        """Return whether there is a value, which is not used by that."""
        with self._lock:
            return self._at(key) is not None

    def get(self, key: Key) -> Value | None:
        """The value, which is then the one used last; None where there is none."""
        with self._lock:
            entry = self._at(key)
            if entry is None:
                return None
            self._kept.move_to_end(key)
            return entry[1]

    def put(self, key: Key, value: Value) -> Value | None:
        """Keep a value, the one used last; the value that was given up for it, if any."""
        with self._lock:
            self._kept[key] = time.monotonic(), value
            self._kept.move_to_end(key)
            return self._kept.popitem(last=False)[1][1] if len(self._kept) > self._most else None

    def pop(self, key: Key) -> None:
        """Keep no value of the key."""
        with self._lock:
            self._kept.pop(key, None)

    def values(self) -> list[Value]:
        """All values, the one used last first."""
        with self._lock:
            return [value for _, value in reversed(self._kept.values())]

    def clear(self) -> list[Value]:
        """Keep nothing; the values that were there."""
        with self._lock:
            values = [value for _, value in self._kept.values()]
            self._kept.clear()
            return values

    def _at(self, key: Key) -> tuple[float, Value] | None:
        entry = self._kept.get(key)
        if entry is not None and time.monotonic() - entry[0] >= self._lasts_s:
            del self._kept[key]
            return None
        return entry
