"""Homes for tests: the drawn sample frames catalogued, and copies of that."""

import shutil
from pathlib import Path

from sqlalchemy import select

from api.settings import Settings
from api.workspace import Workspace
from catalog.records import sources
from catalog.records.tables import Source
from ingest.scan.scan import scan_source

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "sample_data" / "a2d2"
FRAMES = 24


def open_home(home: Path) -> Workspace:
    """The home, whatever the environment says."""
    return Workspace(Settings(home=home, cache=None))


def make_home(home: Path, root: Path, name: str = "a2d2") -> None:
    """A home with one source, its frames catalogued."""
    workspace = open_home(home)
    add_source(workspace, name, root)
    workspace.close()


def add_source(workspace: Workspace, name: str, root: Path) -> None:
    """Add a source and catalog its frames."""
    source = sources.add_source(
        workspace.records,
        Source(
            name=name,
            uri=str(root),
            platform="IBM COS",
            cluster="local",
            datasource=name,
            site="",
        ),
    )
    scan_source(workspace.whole_catalog, workspace.records, source)


def copy_home(template: Path, into: Path, *, with_source: bool = False) -> Path:
    """A copy of a home that a test may change; with a copy of its source too when asked for."""
    home = into / "home"
    shutil.copytree(template, home)
    if with_source:
        root = into / "source"
        shutil.copytree(SAMPLE, root)
        with open_home(home).records.session() as session:
            for source in session.scalars(select(Source)):
                source.uri = str(root)
    return home
