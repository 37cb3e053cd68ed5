"""Frames in layouts of a user: every encoding, what cannot be drawn, and the command."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from catalog.errors import InvalidInput
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.label_image import decode_label
from sample_data.class_words import class_of_entry
from sample_data.classes import ENTRIES
from sample_data.drawn_layout import drawn_layout
from sample_data.generate import write_sample_data
from sample_data.plan import plan_frame
from tests.api.servers import framesift

IDS = np.arange(len(ENTRIES), dtype=np.uint8).reshape(5, 11)
NAMES = 'images = "i/{town}/{scene}_{frame}.png"\nlabels = "l/{town}/{scene}_{frame}.png"\n'
CLASSES = """
[[classes]]
key = [3, 4]
name = "car"
[[classes]]
key = 200
name = "road"
"""
VOID = '[[classes]]\nkey = 0\nname = "none"\nignore = true\n'


def layout_file(folder: Path, text: str) -> str:
    file = folder / "mine.toml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    "encoding", ["index", "index//1000", "index//256", "channel:0", "channel:3", "colour"]
)
@pytest.mark.parametrize("void", [VOID, ""], ids=["ignored", "unknown"])
def test_every_encoding(encoding: str, void: str, tmp_path: Path) -> None:
    """Every entry of the drawn list is its class's pixel; what has none is ignored, or unknown."""
    text = f'{NAMES}encoding = "{encoding}"\n{CLASSES}{void}'
    if encoding == "colour":
        for key, colour in (("[3, 4]", '"#030000"'), ("200", '"#c80000"'), ("0", '"#000000"')):
            text = text.replace(f"key = {key}", f"key = {colour}")
    layout, frame = drawn_layout(layout_file(tmp_path, text)), plan_frame(0, 1)
    keys = class_of_entry(layout.classes)
    names = {entry: None if key is None else key.name
             for entry, key in zip(ENTRIES, keys, strict=True)}  # fmt: skip
    rest = "none" if void else None
    assert (names["Car 3"], names["Solid line"], names["Sky"]) == ("car", "road", rest)
    files = layout.files(frame, np.zeros((5, 11, 3), np.uint8), IDS)
    name = f"town/{frame.name.scene.replace('_', '')}_{frame.name.number:06}.png"
    assert list(files) == [f"l/{name}", f"i/{name}"]
    order = layout.classes.classes
    expected = [order.index(name) if name else UNKNOWN_CLASS for name in names.values()]
    assert decode_label(files[f"l/{name}"], layout.classes).ravel().tolist() == expected
    assert layout.count(IDS) == {name: [*names.values()].count(name)
                                 for name in order if name in names.values()}  # fmt: skip


def test_objects_have_numbers(tmp_path: Path) -> None:
    """Of instance maps: "Car 2" is the class's key and 2; ignored ones and stuff have none."""
    layout = drawn_layout("cityscapes-instances")
    label = layout.path(plan_frame(0, 1), "label")
    (tmp_path / "label.png").write_bytes(
        layout.files(plan_frame(0, 1), np.zeros((5, 11, 3), np.uint8), IDS)[label]
    )
    values = np.array(Image.open(tmp_path / "label.png")).ravel()
    of = dict(zip(ENTRIES, values.tolist(), strict=True))
    assert (of["Car 1"], of["Car 4"], of["Sky"], of["Rain dirt"]) == (26001, 26004, 23, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('images = "i/{frame}.png"\n', "has no labels; expected patterns of both"),
        (
            'images = "i/{id}.png"\nlabels = "l/{id}.png"\n',
            "several drawn frames would be i/id.png",
        ),
        ('images = "i/{scene:3}.png"\nlabels = "l/{scene:3}.png"\n', "expected the fields scene"),
    ],
)
def test_what_cannot_be_drawn(text: str, words: str, tmp_path: Path) -> None:
    """Names that would be one for several frames, or that the layout itself does not read."""
    with pytest.raises(InvalidInput) as error:
        write_sample_data(tmp_path / "set", frames=2, layout=layout_file(tmp_path, text))
    assert words in str(error.value)
    assert not (tmp_path / "set").exists()


@pytest.mark.wide
def test_the_command(tmp_path: Path) -> None:
    """A preset's set, an eighth as wide; the same again makes nothing; another is refused."""
    out = tmp_path / "set"
    drawn = ["sample-data", "--frames", "1", "--workers", "1", "--out", str(out)]
    small = [*drawn, "--layout", "kitti", "--reduce", "8"]
    made = framesift(tmp_path, *small)
    assert (made.returncode, made.stdout.split(":")[0]) == (0, "1 frames in 1 scenes")
    (label,) = out.glob("training/semantic/*_10.png")
    with Image.open(label) as image:
        assert (image.mode, image.size) == ("L", (240, 151))
    with Image.open(out / "training" / "image_2" / label.name) as image:
        assert (image.mode, image.size) == ("RGB", (240, 151))
    assert "already holds these 1 frames" in framesift(tmp_path, *small).stdout
    for arguments, words in (
        ([*drawn, "--layout", "kitti"], "seed 2026, frames 1, layout kitti, reduced 8)"),
        ([*small[:-1], "3"], "reduced is 3; expected 1, 2, 4 or 8"),
        ([*drawn, "--layout", "kity"], "unknown layout 'kity': did you mean kitti?"),
    ):  # fmt: skip
        refused = framesift(tmp_path, *arguments)
        assert (refused.returncode, words in refused.stderr) == (1, True), refused.stderr
