"""Packages show their parts at one look."""

from pathlib import Path

from tests.test_import_circles import REPOSITORY

MOST_ENTRIES = 14
ARCHITECTURE = ("api", "catalog", "ingest", "pipeline", "query")


def modules_of(folder: Path) -> list[Path]:
    """The modules that lie in a folder, besides what makes it a package or a program."""
    return [path for path in folder.glob("*.py") if not path.name.startswith("__")]


def test_packages_show_their_parts() -> None:
    """Modules and folders at the top of each package that the picture of the system names."""
    crowded = {}
    for package in ARCHITECTURE:
        entries = {
            *modules_of(REPOSITORY / package),
            *(path.parent for path in (REPOSITORY / package).glob("*/__init__.py")),
        }
        if len(entries) > MOST_ENTRIES:
            crowded[package] = sorted(entry.name for entry in entries)
    assert crowded == {}
