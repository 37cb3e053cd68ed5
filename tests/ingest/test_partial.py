"""Parts of a source: what is listed, and what of it is left alone."""

import pytest

from catalog.errors import InvalidInput
from ingest.layouts.read_layout import preset
from ingest.sources.partial import FolderSelection

SCENE = "a2d2/20180807_145028/"


@pytest.mark.parametrize(
    ("whole", "flat", "listed", "keys", "left"),
    [
        (["x"], [], ("x/",), ("x/a", "x/y/b"), ("y/a", "xx/a", "x")),
        (["/x/", "x/y", "w"], [], ("w/", "x/"), ("w/a", "x/a", "x/y/b"), ("z",)),
        ([""], [], ("",), ("a", "x/a"), ()),
        ([], [""], ("",), ("a",), ("x/a",)),
        ([], ["x"], ("x/",), ("x/a",), ("x/y/a", "a")),
        (["x/y"], ["x"], ("x/",), ("x/a", "x/y/z/b"), ("x/z/b",)),
        # A frame's files lie in several folders of its scene.
        ([f"{SCENE}label"], [], (SCENE,), (f"{SCENE}camera/cam_front_center/a.png",), ("a2d2/b",)),
        ([], [f"{SCENE}label/cam_front_center"], (SCENE,), (f"{SCENE}lidar/b",), ("a2d2/b",)),
        ([], [SCENE], (SCENE,), (f"{SCENE}note",), (f"{SCENE}label/b",)),
        ([SCENE], [], (SCENE,), (f"{SCENE}label/b",), ()),
    ],
)
def test_parts(
    whole: list[str], flat: list[str], listed: tuple[str, ...], keys: tuple[str, ...],
    left: tuple[str, ...],
) -> None:  # fmt: skip
    """Folders in order, none below another; of what they hold, what was asked for."""
    partial = FolderSelection.of(whole, flat).with_partners(preset("a2d2").folders_around)
    assert partial.folders == listed
    assert not any(map(partial.leaves_out, keys))
    assert all(map(partial.leaves_out, left))


@pytest.mark.parametrize("folder", ["..", "a/../b", "a//b", "./a", "a/."])
def test_no_folder_leads_out(folder: str) -> None:
    """Refused in words; so is no folder at all."""
    with pytest.raises(InvalidInput, match="below the source's root"):
        FolderSelection.of([folder])
    with pytest.raises(InvalidInput, match="no folder given"):
        FolderSelection.of([])
