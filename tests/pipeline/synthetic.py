"""Homes with many frames that nothing but the catalog knows."""

from pathlib import Path

from api.workspace import Workspace
from benchmarks.catalog_scale import load_frames
from catalog.records.sources import add_source
from catalog.records.tables import Source
from catalog.records.tag_definitions import define_class_tags
from ingest.labels.class_list import ClassList
from tests.pipeline.homes import open_home
from tests.query.catalogs import class_names

SCENES = 30
FRAMES_PER_SCENE = 500


def synthetic(home: Path) -> Workspace:
    """A home with SCENES scenes a minute apart, six cameras by turns, and no file of them."""
    workspace = open_home(home)
    names = class_names()
    add_source(
        workspace.records,
        Source(
            name="a2d2",
            uri="/nowhere",
            platform="IBM COS",
            cluster="local",
            datasource="a2d2",
            class_list=ClassList.from_colours(
                {f"#{number:06x}": name for number, name in enumerate(names.values())}
            ).to_json(),
        ),
    )
    define_class_tags(workspace.records, names)
    load_frames(workspace.whole_catalog, list(names), SCENES * FRAMES_PER_SCENE)
    return workspace
