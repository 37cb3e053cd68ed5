"""Extensions are loaded from their packages, and checked once."""

import shutil
from pathlib import Path

import duckdb
import pytest

from catalog.errors import InvalidInput, StorageError
from catalog.lake import extensions
from catalog.lake.extensions import Extensions, file_of

NAMES = ("sqlite_scanner", "ducklake")
CHECKED, UNCHECKED = {"allow_unsigned_extensions": False}, {"allow_unsigned_extensions": True}


@pytest.fixture(autouse=True)
def nothing_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just begun."""
    monkeypatch.setattr(extensions, "_checked", set())
    monkeypatch.setattr(extensions, "_remembered", None)


def loaded(extensions: Extensions) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=extensions.settings)
    extensions.load(connection)
    return connection


def test_the_first_connection_checks() -> None:
    """One that needs another extension, too, checks again."""
    first = Extensions(NAMES[:1])
    assert first.settings == CHECKED
    assert Extensions(NAMES[:1]).settings == CHECKED  # found, and not loaded yet
    loaded(first).close()
    assert Extensions(NAMES[:1]).settings == UNCHECKED
    both = Extensions(NAMES)
    assert both.settings == CHECKED
    loaded(both).close()
    again = Extensions(NAMES)
    assert again.settings == UNCHECKED
    with loaded(again) as connection:
        names = connection.execute(
            "SELECT extension_name FROM duckdb_extensions() WHERE loaded"
        ).fetchall()
    assert {name for (name,) in names} >= set(NAMES)


def test_a_file_that_changed_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes the place of a checked one is refused where it is not signed."""
    name = NAMES[0]
    copy = tmp_path / f"{name}.duckdb_extension"
    shutil.copyfile(file_of(name), copy)
    monkeypatch.setattr(extensions, "file_of", lambda _: copy)
    loaded(Extensions([name])).close()
    assert Extensions([name]).settings == UNCHECKED
    other = tmp_path / "other"
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1  # of the signature
    other.write_bytes(content)
    other.replace(copy)
    forged = Extensions([name])
    assert forged.settings == CHECKED
    with pytest.raises(duckdb.Error, match="signature"):
        loaded(forged)
    assert Extensions([name]).settings == CHECKED


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package, or the version in it: what to install."""
    with pytest.raises(InvalidInput, match="uv sync --inexact --extra team"):
        file_of("none_such")
    monkeypatch.setattr(duckdb, "__version__", "0.0.1")
    with pytest.raises(StorageError, match=r"for version 0\.0\.1 is not installed"):
        file_of(NAMES[0])


def test_what_was_checked_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the next process of this user; not out of a file that others may write."""
    file = tmp_path / "checked.json"
    extensions.remember_in(file)
    loaded(Extensions(NAMES)).close()
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(extensions, "_checked", set())
    assert Extensions(NAMES).settings == CHECKED
    extensions.remember_in(file)
    assert Extensions(NAMES).settings == UNCHECKED
    for spoil in (lambda: file.chmod(0o666), lambda: file.write_text("[1]"), file.unlink):
        file.chmod(0o600)
        spoil()
        monkeypatch.setattr(extensions, "_checked", set())
        extensions.remember_in(file)
        assert Extensions(NAMES).settings == CHECKED
