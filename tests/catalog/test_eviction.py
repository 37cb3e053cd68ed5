"""Which entries a bounded folder gives up."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.storage.eviction import Bounds, Entry, entries_in, entries_to_evict


def entry(name: str, used: float, size: int = 1) -> Entry:
    """One below a folder that is named for its owner."""
    return Entry(Path(name), used, size)


def names(entries: list[Entry]) -> list[str]:
    """Where they are."""
    return [str(one.path) for one in entries]


def owner(one: Entry) -> str:
    """The folder's name."""
    return one.path.parts[0]


@pytest.mark.parametrize(
    ("bounds", "gone"),
    [
        (Bounds(), []),
        (Bounds(entries=4, size=10, since=1.0), []),
        (Bounds(since=2.0), ["a/1"]),
        (Bounds(entries=2), ["a/1", "b/2"]),
        (Bounds(size=6), ["a/1", "b/2", "a/3"]),
        (Bounds(entries=3, since=2.5), ["a/1", "b/2"]),
        (Bounds(entries=0), ["a/1", "b/2", "a/3", "a/4"]),
        (Bounds(size=0), ["a/1", "b/2", "a/3", "a/4"]),
    ],
)
def test_the_least_recently_used_go(bounds: Bounds, gone: list[str]) -> None:
    """By age, by number, by size, and whatever the order in which they are listed."""
    entries = [entry("a/4", 4, 4), entry("a/1", 1, 1), entry("a/3", 3, 3), entry("b/2", 2, 2)]
    assert names(entries_to_evict(entries, bounds)) == gone


def test_they_go_from_the_owner_who_has_most() -> None:
    """Of bytes while there are too many bytes, else of entries; no owner is asked for in vain."""
    entries = [entry("a/1", 1, 9), entry("b/2", 2), entry("b/3", 3), entry("b/4", 4)]
    assert names(entries_to_evict(entries, Bounds(entries=2), owner)) == ["b/2", "b/3"]
    assert names(entries_to_evict(entries, Bounds(size=11), owner)) == ["a/1"]
    assert names(entries_to_evict(entries, Bounds(entries=2, size=11), owner)) == ["a/1", "b/2"]

    def refused(_: Entry) -> str:
        raise AssertionError("nothing is too much")

    assert entries_to_evict(entries, Bounds(entries=4, size=12), refused) == []


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.integers(0, 12),
    st.integers(0, 40),
)
def test_what_stays_keeps_to_the_bounds(
    drawn: list[tuple[str, int, int]], most: int, size: int
) -> None:
    """And no entry goes that would have fitted: the last one to go was one too many."""
    entries = [entry(f"{who}/{n}", used, size) for n, (who, used, size) in enumerate(drawn)]
    gone = entries_to_evict(entries, Bounds(most, size), owner)
    stays = [one for one in entries if one not in gone]
    assert len(gone) + len(stays) == len(entries)
    assert len(stays) <= most
    assert sum(one.size for one in stays) <= size
    if gone:
        more = [*stays, gone[-1]]
        assert len(more) > most or sum(one.size for one in more) > size


def test_entries_are_what_lies_there(tmp_path: Path) -> None:
    """A file's time and size; one that is gone is left out."""
    there = tmp_path / "one"
    there.write_bytes(b"four")
    os.utime(there, (50.0, 60.0))
    assert list(entries_in([there, tmp_path / "gone"])) == [Entry(there, 60.0, 4)]
